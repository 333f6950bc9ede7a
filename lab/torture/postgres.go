package torture

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-chat/coppice/db/embedded"
)

// A postgres is the database of a run: a private Postgres that can be killed
// and started again. It listens on a unix socket; see bridge for the port.
type postgres struct {
	dataDir    string
	parameters map[string]string // besides those of package embedded
	log        *slog.Logger

	mu     sync.Mutex // held through a kill and the start after it
	server *embedded.Server
	socket atomic.Pointer[string] // path of the unix socket
}

// start starts Postgres, also on the data of one that was killed.
func (p *postgres) start(ctx context.Context) error {
	server, err := embedded.Start(ctx, embedded.Config{DataDir: p.dataDir, Parameters: p.parameters, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	conf, err := pgconn.ParseConfig(server.URL())
	if err != nil {
		return err
	}
	p.server = server
	_, socket := pgconn.NetworkAddress(conf.Host, conf.Port)
	p.socket.Store(&socket)
	return nil
}

// url is how the run itself connects, past all links.
func (p *postgres) url() string { return p.server.URL() }

// lingering is how long Postgres' other processes may take to end by themselves
// once their main process is dead.
const lingering = 2 * time.Second

// kill kills the postmaster, whose other processes then end by themselves. One
// that doesn't keeps the data directory in use, and a start would be refused in
// the name of the main process, which is gone: it is killed, too, as a service
// manager does.
func (p *postgres) kill() error {
	content, err := os.ReadFile(filepath.Join(p.dataDir, "cluster", "postmaster.pid"))
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return fmt.Errorf("postmaster.pid: %w", err)
	}
	children := childrenOf(pid)
	if err := killProcess(pid); err != nil {
		return err
	}
	<-p.server.Done()
	if children = awaitEnd(children, lingering); len(children) == 0 {
		return nil
	}
	for _, c := range children {
		p.log.Info("a process of Postgres outlived its main process, and is killed", "pid", c.pid)
		_ = killProcess(c.pid) // where it has just ended, so much the better
	}
	if children = awaitEnd(children, readyBound); len(children) > 0 {
		return fmt.Errorf("processes of Postgres that can't be killed: %v", children)
	}
	return nil
}

// awaitEnd waits until processes have ended, and gives those that haven't in
// time.
func awaitEnd(all []process, patience time.Duration) (left []process) {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		all = slices.DeleteFunc(all, func(p process) bool { return !p.lives() })
		if len(all) == 0 || time.Now().After(deadline) {
			return all
		}
	}
}

// stop ends it for good.
func (p *postgres) stop(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		if err := p.server.Stop(ctx); err != nil {
			p.log.Warn("Postgres did not stop in time", "error", err)
		}
	}
}

// A bridge gives Postgres a TCP port, which is all that the links can connect
// to. While Postgres is down, it closes each connection at once.
type bridge struct {
	listener net.Listener
	postgres *postgres

	mu    sync.Mutex
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

func newBridge(p *postgres) (*bridge, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &bridge{listener: listener, postgres: p, conns: map[net.Conn]bool{}}
	b.wg.Go(b.accept)
	return b, nil
}

func (b *bridge) addr() string { return b.listener.Addr().String() }

func (b *bridge) accept() {
	for {
		client, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.wg.Go(func() { b.carry(client) })
	}
}

// carry copies both ways until one side ends.
func (b *bridge) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", *b.postgres.socket.Load())
	if err != nil {
		return
	}
	defer server.Close()
	if !b.keep(client, server) {
		return
	}
	defer b.drop(client, server)
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
	client.Close()
	server.Close()
	<-done
}

// keep remembers connections to close; false means that the bridge is closed.
func (b *bridge) keep(conns ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conns == nil {
		return false
	}
	for _, c := range conns {
		b.conns[c] = true
	}
	return true
}

func (b *bridge) drop(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		delete(b.conns, c)
	}
}

func (b *bridge) close() {
	b.listener.Close()
	b.mu.Lock()
	conns := b.conns
	b.conns = nil
	b.mu.Unlock()
	for c := range conns {
		c.Close()
	}
	b.wg.Wait()
}
