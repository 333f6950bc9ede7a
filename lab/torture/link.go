package torture

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A link is a connection between two parts of a run that can go wrong: a
// toxiproxy in this process.
type link struct {
	busy  sync.Mutex // held by the fault that it has
	mu    sync.Mutex // one change at a time
	proxy *toxiproxy.Proxy
	addr  string // where to connect to
}

// quiet silences toxiproxy's toxics, which log through zerolog's global logger.
var quiet = sync.OnceFunc(func() { zerolog.SetGlobalLevel(zerolog.Disabled) })

// newLink listens on a port of its own and connects to upstream.
func newLink(name, upstream string) (*link, error) {
	quiet()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &link{proxy: toxiproxy.NewProxy(server, name, "127.0.0.1:0", upstream)}
	if err := l.proxy.Start(); err != nil {
		return nil, err
	}
	l.addr = l.proxy.Listen
	return l, nil
}

func (l *link) close() { l.proxy.Stop() }

// cut closes every connection, and refuses new ones until mended.
func (l *link) cut() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proxy.Stop()
	return nil
}

// slow delays what goes through, each way, by so many milliseconds, more or
// less.
func (l *link) slow(milliseconds int) error {
	attributes := fmt.Sprintf(`{"latency": %d, "jitter": %d}`, milliseconds, milliseconds/2)
	return l.add("latency", attributes)
}

// narrow lets through so many kilobytes a second, each way, in small pieces.
func (l *link) narrow(kilobytes int) error {
	return l.add("bandwidth", fmt.Sprintf(`{"rate": %d}`, kilobytes))
}

// silence keeps connections open and lets nothing through. They are closed
// when it is mended.
func (l *link) silence() error { return l.add("timeout", `{"timeout": 0}`) }

// reset breaks each connection with a reset, at its next piece of data.
func (l *link) reset() error { return l.add("reset_peer", `{"timeout": 0}`) }

// add puts a toxic on both ways.
func (l *link) add(toxic, attributes string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, stream := range []string{"upstream", "downstream"} {
		spec := fmt.Sprintf(`{"type": %q, "stream": %q, "attributes": %s}`, toxic, stream, attributes)
		if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(spec)); err != nil {
			return fmt.Errorf("link %s: %s: %w", l.proxy.Name, toxic, err)
		}
	}
	return nil
}

// mend ends what is wrong with the link.
func (l *link) mend() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proxy.Toxics.ResetToxics(context.Background())
	if l.proxy.Enabled {
		return nil
	}
	if err := l.proxy.Start(); err != nil {
		return fmt.Errorf("link %s: %w", l.proxy.Name, err)
	}
	return nil
}
