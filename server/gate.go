package server

import (
	"context"
	"sync"
	"time"
)

// A gate lets so many requests through at a time, and of those no more than
// half for one tenant. Others wait for theirs to end: most end soon, and only
// clients that are slow, or ask for much, on purpose fill it.
type gate struct {
	what      string // for people
	slots     chan struct{}
	perTenant int

	mu      sync.Mutex
	tenants map[string]*turnstile // of tenants that are inside, or wait
}

// A turnstile is one tenant's part of a gate.
type turnstile struct {
	slots chan struct{}
	users int
}

func newGate(what string, most int) *gate {
	return &gate{what: what, slots: make(chan struct{}, most), perTenant: max(most/2, 1), tenants: map[string]*turnstile{}}
}

// enter waits for a place, but not longer than patience. Who got one leaves.
func (g *gate) enter(ctx context.Context, tenant string, patience time.Duration) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	own := g.turnstile(tenant)
	if !pass(ctx, own.slots) {
		g.release(tenant, own)
		return nil, g.full(ctx)
	}
	if !pass(ctx, g.slots) {
		<-own.slots
		g.release(tenant, own)
		return nil, g.full(ctx)
	}
	return func() {
		<-g.slots
		<-own.slots
		g.release(tenant, own)
	}, nil
}

// pass takes a place, or waits for one. One that is free counts more than that
// the time is over.
func pass(ctx context.Context, slots chan<- struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
	}
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g *gate) turnstile(tenant string) *turnstile {
	g.mu.Lock()
	defer g.mu.Unlock()
	own := g.tenants[tenant]
	if own == nil {
		own = &turnstile{slots: make(chan struct{}, g.perTenant)}
		g.tenants[tenant] = own
	}
	own.users++
	return own
}

func (g *gate) release(tenant string, own *turnstile) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(g.tenants, tenant)
	}
}

func (g *gate) full(ctx context.Context) error {
	if ctx.Err() == context.Canceled {
		return ctx.Err()
	}
	return problemf(CodeTooManyStreams, "", "As many %s are under way as may be, and none ended in time. Send the request again.", g.what)
}

// Search waits for a turn among searches, for a route whose requests may search but
// mostly don't. Whoever got one leaves.
func (r *Request) Search(ctx context.Context) (leave func(), err error) {
	return r.server.searches.enter(ctx, r.tenant, r.server.cfg.RequestTimeout)
}

// Import waits for a turn among imports, for a route whose requests may store as much
// as one but mostly don't. Whoever got one leaves.
func (r *Request) Import(ctx context.Context) (leave func(), err error) {
	return r.server.imports.enter(ctx, r.tenant, r.server.cfg.RequestTimeout)
}

// Patience is how long an answer may take that waits for no model.
func (r *Request) Patience() time.Duration { return r.server.cfg.RequestTimeout }

// takeTurns has requests wait that hold on to something for as long as their
// client makes them: a tree or an export to a connection of the database while
// it is read, an import to memory while it is written, a search to a connection
// while it looks for what may be many words in many messages. It refuses those
// that follow one reply too many at once. The request leaves when it is over.
func (s *Server) takeTurns(r *Request) (leave func(), err error) {
	may := r.route.May
	switch {
	case may.has(Follows):
		return s.streams.enter(r.key)
	case may.has(Watches):
		return s.watches.enter(r.key)
	case may.has(Reads):
		return s.reads.enter(r.Context(), r.tenant, s.cfg.RequestTimeout)
	case may.has(Imports):
		return s.imports.enter(r.Context(), r.tenant, s.cfg.RequestTimeout)
	case may.has(Searches), may.has(SearchesByQuery) && r.query.Get("query") != "":
		return s.searches.enter(r.Context(), r.tenant, s.cfg.RequestTimeout)
	}
	return func() {}, nil
}
