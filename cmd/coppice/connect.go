package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// serverFlags name a server that runs.
type serverFlags struct {
	Server string `placeholder:"URL" help:"Coppice to ask instead of a database."`
	Key    string `placeholder:"KEY" help:"API key for --server."`
}

// dataFlags are the flags of every command on conversations.
type dataFlags struct {
	serverFlags   `group:"Server"`
	databaseFlags `group:"Database"`
	tenantFlags   `group:"Database"`

	own string // a flag of models or settings that was typed, which no running server takes; "" for none
}

// AfterApply looks for flags on the command line that contradict each other.
func (f *dataFlags) AfterApply(k *kong.Context) error {
	typed := map[string]bool{}
	place := "" // a flag that says where the data is
	for _, p := range k.Path {
		if p.Flag == nil || p.Resolved {
			continue
		}
		typed[p.Flag.Name] = true
		switch group := p.Flag.Group; {
		case group == nil:
		case group.Key == "Database":
			place = p.Flag.Name
		case group.Key != "Server" && group.Key != "All commands":
			f.own = p.Flag.Name
		}
	}
	if place != "" && place != "tenant" && !typed["server"] {
		f.Server = "" // of the environment
	}
	if f.Server == "" && typed["key"] {
		return errors.New("--key goes with --server: it is that server's key")
	}
	if f.Server != "" && f.own+place != "" {
		if f.own == "" {
			f.own = place
		}
		return fmt.Errorf("--%s doesn't go with --server: models, settings and data are the server's, and the key tells the tenant", f.own)
	}
	return nil
}

// operatorFlags are the flags of every command for operators, which name tenants otherwise.
type operatorFlags struct {
	serverFlags   `group:"Server"`
	databaseFlags `group:"Database"`
}

func (f *operatorFlags) data() *dataFlags {
	return &dataFlags{serverFlags: f.serverFlags, databaseFlags: f.databaseFlags, tenantFlags: tenantFlags{tree.DefaultTenant}}
}

// AfterApply looks for flags on the command line that contradict each other.
func (f *operatorFlags) AfterApply(k *kong.Context) error {
	d := f.data()
	err := d.AfterApply(k)
	f.Server = d.Server
	return err
}

func (f *operatorFlags) withServer(ctx context.Context, out *terminal.Console, logs *logFlags, a alone, do func(*client) error) error {
	return f.data().withServer(ctx, out, logs, a, do)
}

// alone says how a command answers where no server runs that it could ask.
type alone struct {
	begins bool // it may begin a data directory
	quiet  bool // the command itself tells what the log warns of
	// config adds the models; nil for none. settings gives those of contexts, over those of
	// the server that started last, so that the page and the command line tell the same of
	// a branch; nil for the same.
	config   func(*app.Config, *slog.Logger) error
	settings func(served summarize.Settings) (summarize.Settings, error)
}

// withServer runs a command on a server: the one of --server; else the one that runs on
// the data directory; else one in this process, on the database.
func (f *dataFlags) withServer(ctx context.Context, out *terminal.Console, logs *logFlags, a alone, do func(*client) error) error {
	c, err := f.running(ctx)
	if err != nil {
		return err
	}
	if c != nil {
		return do(c)
	}
	if _, err := os.Stat(f.DataDir); !a.begins && f.DatabaseURL == "" && errors.Is(err, fs.ErrNotExist) {
		return noData(f.DataDir)
	}
	return f.withOwnServer(ctx, out, logs, a, do)
}

// running finds the server that runs; nil for none.
func (f *dataFlags) running(ctx context.Context) (*client, error) {
	if f.Server != "" {
		u, err := url.Parse(f.Server)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, usagef("--server %s is no URL such as https://coppice.example.com", terminal.OneLine(f.Server, 200))
		}
		return &client{http: http.DefaultClient, base: strings.TrimRight(f.Server, "/"), key: f.Key, named: true}, nil
	}
	if f.DatabaseURL != "" || f.own != "" {
		return nil, nil
	}
	var local localServer
	content, err := os.ReadFile(filepath.Join(f.DataDir, localServerFile))
	if err != nil || json.Unmarshal(content, &local) != nil {
		return nil, nil
	}
	c := &client{http: http.DefaultClient, base: local.URL}
	ctx, cancel := context.WithTimeout(ctx, slowStart)
	defer cancel()
	// Where it was killed, something else may listen there. A Coppice without keys lets any
	// key in, but only the one with this secret takes it for that of a tenant.
	tenant := rand.Text()
	c.key = app.LocalKey(local.Secret, tenant)
	var me struct {
		TenantID string `json:"tenant_id"`
	}
	if c.get(ctx, "/v1/me", nil, &me) != nil || me.TenantID != tenant {
		return nil, nil
	}
	c.key = app.LocalKey(local.Secret, f.Tenant)
	return c, nil
}

const (
	// commandConns are enough for a command, which does one thing at a time.
	commandConns = 4
	// commandTimeout is longer than anything takes: who is there to wait can end it.
	commandTimeout = 24 * time.Hour
	// commandBytes are more than anything has: what a command reads is its user's own.
	commandBytes = 1 << 50
	// endTimeout is how long the end of a command waits for a title, and titleSlow after how
	// long it says so.
	endTimeout = 30 * time.Second
	titleSlow  = time.Second
)

// withOwnServer runs a command on a server in this process, over a pipe. The data is at the
// database URL if there is one; else in the private Postgres that a running program has on
// the data directory; else in one that the command starts, and stops.
func (f *dataFlags) withOwnServer(ctx context.Context, out *terminal.Console, logs *logFlags, a alone, do func(*client) error) (err error) {
	log := logs.logger(out.Errors, slog.LevelWarn)
	// Where no model answers, the provider would be asked for its list.
	config := app.Config{Replies: reply.Config{Models: []llm.Model{llm.Offline(0)}}, KeepWindow: true, Logger: log}
	if a.config != nil {
		if err := a.config(&config, log); err != nil {
			return err
		}
	}
	if a.quiet {
		config.Logger = logs.logger(out.Errors, slog.LevelError)
	}
	if a.settings == nil {
		a.settings = func(served summarize.Settings) (summarize.Settings, error) { return served, nil }
	}
	config.Database, config.LocalSecret = f.config(), rand.Text()
	config.Database.MaxConns = commandConns
	config.Version = readBuildInfo().Version
	config.Server = server.Config{
		RequestTimeout: commandTimeout, CompactionTimeout: commandTimeout, MaxBodyBytes: commandBytes, MaxImportBytes: commandBytes,
		MaxConversation: commandBytes, MaxBytesInFlight: commandBytes,
	}
	slow := f.announceSlow(out)
	c, err := app.Join(ctx, config, a.settings)
	slow.Stop()
	if err != nil {
		return err
	}
	defer c.Close(ctx) //nolint:errcheck // Stop told it
	pipe := newPipe()
	web := &http.Server{Handler: c}
	go web.Serve(pipe) //nolint:errcheck // until it is closed
	err = do(&client{
		http: &http.Client{Transport: &http.Transport{DialContext: pipe.dial, DisableCompression: true}}, base: "http://localhost", key: app.LocalKey(config.LocalSecret, f.Tenant),
		catchUp: func(ctx context.Context) error { return c.Search().CatchUp(ctx, c.Store().ForTenant(f.Tenant)) },
	})
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	web.Close()
	patient, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	defer time.AfterFunc(titleSlow, func() {
		if out.Interactive && ctx.Err() == nil {
			out.Remark("A model looks for a title. Ctrl-C ends without it.")
		}
	}).Stop()
	if stopErr := c.Stop(patient); err == nil {
		err = stopErr
	}
	awaitOthers(ctx, c.Database(), out)
	return err
}

// A pipe is a listener whose connections stay in this process.
type pipe struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipe() *pipe { return &pipe{conns: make(chan net.Conn), done: make(chan struct{})} }

// dial connects to the listener.
func (p *pipe) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept waits for a connection.
func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and dial.
func (p *pipe) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr is no address.
func (p *pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// A localServer tells commands on its data directory how they reach it. Whoever can read
// the directory can read the data, too.
type localServer struct {
	URL    string `json:"url"`
	Secret string `json:"secret"` // see app.LocalKey
}

// localServerFile is where that stands.
const localServerFile = "server.json"

// announce writes the file, until forget.
func (l localServer) announce(dir string) (forget func(), err error) {
	content, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, localServerFile)
	return func() { os.Remove(path) }, os.WriteFile(path, content, 0o600)
}
