package dbtest

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A Fragile is a pool whose connections break when they are told to.
type Fragile struct {
	*pgxpool.Pool

	mu     sync.Mutex
	breaks Breaks
	left   int // messages until they break; -1 where they don't
	broke  bool
}

// Breaks says which message breaks the connections.
type Breaks string

const (
	BeforeSending Breaks = "before it is sent"
	AfterSending  Breaks = "before its answer"
)

// NewFragile returns a pool on the same database as another pool.
func NewFragile(t testing.TB, pool *pgxpool.Pool) *Fragile {
	t.Helper()
	f := &Fragile{left: -1}
	config := pool.Config()
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if f.broken() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return fragileConn{conn, f}, nil
	}
	var err error
	if f.Pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// Break lets the connections send n messages more, all together. The next one
// breaks them, and none can be made then.
func (f *Fragile) Break(n int, how Breaks) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.breaks, f.broke = n, how, false
}

// Mend ends that, and reports whether a connection broke.
func (f *Fragile) Mend() (broke bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = -1
	return f.broke
}

// broken reports whether connections are broken.
func (f *Fragile) broken() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left >= 0 && f.broke
}

// send counts a message, and says what becomes of it.
func (f *Fragile) send() (sends, breaks bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.left < 0:
		return true, false
	case f.left > 0:
		f.left--
		return true, false
	}
	sends = !f.broke && f.breaks == AfterSending
	f.broke = true
	return sends, true
}

type fragileConn struct {
	net.Conn
	of *Fragile
}

func (c fragileConn) Write(p []byte) (n int, err error) {
	sends, breaks := c.of.send()
	if sends {
		n, err = c.Conn.Write(p)
	} else {
		err = &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
	}
	if breaks {
		c.Conn.Close()
	}
	return n, err
}
