package torture

import (
	"context"
	"net"
	"sync"
	"time"
)

// A link carries connections between two parts of a run, and goes wrong when a
// fault says so.
type link struct {
	listener net.Listener
	dial     func() (net.Conn, error)

	mu      sync.Mutex
	trouble trouble
	conns   map[net.Conn]bool
}

// A trouble is what is wrong with a link.
type trouble int

const (
	well   trouble = iota
	cut            // connections are reset, new ones are closed at once
	silent         // connections stay open, and what is sent gets lost
)

// newLink makes a link that listens on a port of its own until the run ends.
func (r *run) newLink(dial func() (net.Conn, error)) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, dial: dial, conns: map[net.Conn]bool{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(conn)
		}
	}()
	r.atEnd(func() { listener.Close(); l.set(cut) })
	return l, nil
}

// addr is where to connect to.
func (l *link) addr() string { return l.listener.Addr().String() }

// spoil has the link go wrong for a time.
func (l *link) spoil(ctx context.Context, t trouble, lasts time.Duration) error {
	l.set(t)
	sleep(ctx, lasts)
	l.set(well)
	return nil
}

// set changes what is wrong with the link. Connections that lost data are closed.
func (l *link) set(t trouble) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t == cut || l.trouble == silent {
		for conn := range l.conns {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // so that the other side sees a reset; where that fails, it sees an end
			}
			conn.Close()
		}
	}
	l.trouble = t
}

func (l *link) now() trouble {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trouble
}

// carry copies both ways until one side ends.
func (l *link) carry(client net.Conn) {
	defer client.Close()
	if l.now() == cut {
		return
	}
	server, err := l.dial()
	if err != nil {
		return
	}
	defer server.Close()
	l.mu.Lock()
	l.conns[client], l.conns[server] = true, true
	l.mu.Unlock()
	var ways sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		ways.Go(func() {
			defer way[0].Close()
			defer way[1].Close()
			l.copy(way[0], way[1])
		})
	}
	ways.Wait()
	l.mu.Lock()
	delete(l.conns, client)
	delete(l.conns, server)
	l.mu.Unlock()
}

// copy copies one way. What it reads while the link is silent gets lost.
func (l *link) copy(to, from net.Conn) {
	for piece := make([]byte, 32<<10); ; {
		n, err := from.Read(piece)
		if n > 0 && l.now() != silent {
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
