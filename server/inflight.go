package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// smallBytes is how many bytes a body or an answer may have that is in no limit of
// bytes.
const smallBytes = 64 << 10

// hold waits until so many bytes may be in memory for the request's tenant. They are
// held until the request is over, or Release is called. A caller that needs fewer
// bytes than it thought says so by shrink.
func (r *Request) hold(l *limiter[string], bytes int64, what string) (shrink func(bytes int64), err error) {
	if bytes <= smallBytes || r.who.Tenant == "" {
		return func(int64) {}, nil
	}
	held := min(float64(bytes), l.perKey)
	if _, err := r.awaitUnits(r.Context(), l, r.who.Tenant, held, what); err != nil {
		return nil, err
	}
	shrink = func(bytes int64) {
		less := min(float64(bytes), held)
		l.giveBack(r.who.Tenant, held-less)
		held = less
	}
	r.held = append(r.held, func() { shrink(0) })
	return shrink, nil
}

// Release gives back what the request holds in the limits of bytes. A handler calls
// it before it waits for a model: others may then send large bodies meanwhile. The
// handler keeps what the model reads, and the number of such requests has a limit of
// its own.
func (r *Request) Release() {
	for _, giveBack := range r.held {
		giveBack()
	}
	r.held = nil
}

// holdBody waits until a body of so many bytes may be in memory, before it is read:
// bodies that took their bytes as they came would wait for each other. The time in
// which the body must come begins after that.
func (r *Request) holdBody(bytes int64) (shrink func(bytes int64), err error) {
	shrink, err = r.hold(r.server.limits.bodies, bytes, "bytes of large requests")
	if err == nil && r.coming != nil {
		r.coming.begin()
	}
	return shrink, err
}

// Making waits until the tenant may have one more answer made that may become large.
// Routes that only read wait by themselves. The answer is made when it holds its bytes:
// so those that wait for bytes are few.
func (r *Request) Making() error {
	if r.who.Tenant == "" {
		return nil
	}
	leave, err := r.await(r.Context(), r.server.limits.making, r.who.Tenant, "requests")
	if err == nil {
		r.made = sync.OnceFunc(leave)
	}
	return err
}

// HoldAnswer waits until so many bytes of an answer may be in memory. The answer holds
// them until the request is over.
func (r *Request) HoldAnswer(bytes int) error {
	_, err := r.hold(r.server.limits.answers, int64(bytes), "bytes of large answers")
	r.made()
	return err
}

// sized is an Answer that is in memory as a whole.
type sized interface{ Size() int }

// maxConnections is how many connections of clients a server has at a time: each
// takes some 30 KB, and needs no key.
const maxConnections = 10_000

// boundConnections closes new connections while there are as many as may be.
func (s *Server) boundConnections(most int64) func(net.Conn, http.ConnState) {
	var open atomic.Int64
	return func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if open.Add(1) > most {
				s.log.WarnContext(context.Background(), "a connection was closed, as as many are open as may be", "most", most)
				_ = c.Close()
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
}
