package server

import (
	"context"
	"testing"
	"time"
)

// TestSlowReadersOfALink holds that one link's readers, who need no key, hold a part
// of the pages that may be under way, and that other links open meanwhile.
func TestSlowReadersOfALink(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.RequestTimeout = time.Second })
	plant(t, a.store, "c")
	link, other := a.share("thanks", ""), a.share("thanks", "")
	for range maxLinkReads {
		if leave, ok := a.server.limits.links.hold(context.Background(), link.Token, 1, 0); ok {
			defer leave()
		}
	}
	a.refused(429, CodeTooManyStreams, request{method: "GET", path: "/v1/shared/" + link.Token})
	a.must(200, nil, request{method: "GET", path: "/v1/shared/" + other.Token})
}
