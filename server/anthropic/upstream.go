package anthropic

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/coppice-chat/coppice/server"
)

// newUpstream is a server that speaks Anthropic's Messages API. Requests go to it as they
// came, and its answers go back as they came.
func newUpstream(base *url.URL, key string, client *http.Client) *server.Forward {
	return server.NewForward(base, client, sentOn, comesBack, func(to, from http.Header) {
		if key != "" {
			to.Set("X-Api-Key", key)
		} else {
			sendKey(to, from)
		}
	})
}

// relay answers a request with the upstream's answer, and records nothing.
func (s surface) relay(r *server.Request, body []byte) (server.Answer, error) {
	return s.upstream.Relay(r, strings.TrimPrefix(r.URL.Path, Prefix), body)
}

// sentOn tells whether a header of a request goes on to the upstream: what the API and
// its clients say of themselves, no key, and nothing of the way to Coppice.
func sentOn(name string) bool {
	switch name {
	case "Accept", "Content-Type", "User-Agent", "X-App":
		return true
	}
	for _, beginning := range []string{"Anthropic-", "X-Stainless-", "X-Claude-"} {
		if strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}

// sendKey sends on the key that a client sent, unless Coppice made it.
func sendKey(to, from http.Header) {
	for _, name := range []string{"X-Api-Key", "Authorization"} {
		if value := from.Get(name); value != "" && !strings.HasPrefix(strings.TrimPrefix(value, "Bearer "), "cop_") {
			to.Set(name, value)
		}
	}
}

// comesBack tells whether a header of the upstream's answer goes to the client.
func comesBack(name string) bool {
	switch name {
	case "Content-Type", "Request-Id", "Retry-After", "Retry-After-Ms", "X-Should-Retry":
		return true
	}
	return strings.HasPrefix(name, "Anthropic-")
}
