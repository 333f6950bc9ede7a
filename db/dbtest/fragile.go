package dbtest

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/internal/check"
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
		return &fragileConn{Conn: conn, of: f}, nil
	}
	f.Pool = check.Must(pgxpool.NewWithConfig(t.Context(), config))(t)
	t.Cleanup(f.Close)
	return f
}

// An Answer is what came of something that asks the database.
type Answer struct {
	Away bool   // it says that the database is away
	Good bool   // it is what is answered where the database is there
	Said string // for a test's log
}

// EachBreak asks while the connections break at the first message to the database,
// at the second one, and so on until no message breaks. Each answer but the last
// must say that the database is away. Each time, prepare is called while the
// database is there, and returns what asks.
func (f *Fragile) EachBreak(t testing.TB, how Breaks, prepare func() (ask func() Answer)) {
	t.Helper()
	// An answer that is good all the same is asked for again: the message of
	// another goroutine may have broken the connections. So is one that is bad though
	// none broke: it may have had too little time.
	const tries, most = 5, 100
	for n, try := 0, 1; n < most; {
		ask := prepare()
		f.breakAt(n, how)
		got := ask()
		broke := f.Repair()
		switch {
		case !broke && got.Good:
			return
		case broke && got.Away:
			n, try = n+1, 1
		case (!broke || got.Good) && try < tries:
			try++
		default:
			t.Errorf("message %d broke %s (%t): %s", n, how, broke, got.Said)
			return
		}
	}
	t.Errorf("%d messages are not enough", most)
}

func (f *Fragile) breakAt(n int, how Breaks) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.breaks, f.broke = n, how, false
}

// Repair lets connections be made again, and reports whether some broke.
func (f *Fragile) Repair() (broke bool) {
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
	of    *Fragile
	broke atomic.Bool // so that no answer is read any more
}

// Read gives nothing that came after the break. pgx reads beside a write that takes
// long, so an answer may come before the connection is closed.
func (c *fragileConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.broke.Load() {
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return n, err
}

func (c *fragileConn) Write(p []byte) (n int, err error) {
	if goodbye(p) {
		return c.Conn.Write(p)
	}
	sends, breaks := c.of.send()
	if breaks {
		c.broke.Store(true)
		defer c.Conn.Close()
	}
	if !sends {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return c.Conn.Write(p)
}

// goodbye reports whether a message is one of those that pgx sends in the
// background after a connection broke: that it ends, and, on a connection of its
// own, that Postgres shall cancel its query.
func goodbye(p []byte) bool {
	const cancel = 80877102
	return len(p) == 5 && p[0] == 'X' || len(p) == 16 && binary.BigEndian.Uint32(p[4:]) == cancel
}
