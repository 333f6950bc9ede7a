package server

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
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

// admit has requests wait that hold on to something for as long as their client
// makes them: a tree or an export to a connection of the database while it is
// read, an import to memory while it is written, a search to a connection while
// it looks for what may be many words in many messages.
func (s *Server) admit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		var g *gate
		switch path := c.Path(); {
		case strings.HasSuffix(path, "/tree"), strings.HasSuffix(path, "/export"):
			g = s.reads
		case strings.HasSuffix(path, "/imports"):
			g = s.imports
		case path == "/v1/search", path == "/v1/conversations" && c.QueryParam("query") != "":
			g = s.searches
		default:
			return next(c)
		}
		ctx := c.Request().Context()
		leave, err := g.enter(ctx, callOf(ctx).tenant, s.cfg.RequestTimeout)
		if err != nil {
			return err
		}
		defer leave()
		return next(c)
	}
}
