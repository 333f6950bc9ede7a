package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

type serveCommand struct {
	databaseFlags     `group:"Database"`
	settingsFlags     `group:"Contexts and compactions"`
	modelFlags        `group:"Models"`
	workerFlags       `group:"Contexts and compactions"`
	replyFlags        `group:"Replies"`
	MaxConns          int32         `default:"20" placeholder:"N" group:"Database" help:"Connections to the database at most (${default})."`
	Addr              string        `default:"127.0.0.1:8787" placeholder:"HOST:PORT" help:"Address to listen on (${default})."`
	Insecure          bool          `help:"Serve other machines although no API key was made: whoever reaches the server reads and writes everything."`
	AllowHost         []string      `aliases:"allowed-host" placeholder:"NAME" help:"Host names by which requests may call this server, besides the address it listens on."`
	AllowOrigin       []string      `aliases:"allowed-origin" placeholder:"ORIGIN" help:"Origins whose web pages may use this server, such as https://chat.example.com."`
	PprofAddr         string        `placeholder:"HOST:PORT" help:"Loopback address to serve Go's profiles on, such as 127.0.0.1:6060. Without it there are none."`
	Demo              bool          `help:"Import a small demonstration conversation first."`
	RequestTimeout    time.Duration `default:"30s" placeholder:"DURATION" group:"Limits" help:"Time that a request may take (${default})."`
	CompactionTimeout time.Duration `default:"3m" placeholder:"DURATION" group:"Limits" help:"Time that a compaction on demand may take (${default})."`
	StatementTimeout  time.Duration `default:"20s" placeholder:"DURATION" group:"Limits" help:"Time that a statement in the database may take (${default})."`
	ShutdownTimeout   time.Duration `default:"10s" placeholder:"DURATION" group:"Limits" help:"Time that running requests get to finish when the server stops (${default})."`
	MaxConversations  uint32        `placeholder:"N" group:"Limits" help:"Conversations that a tenant may have. Without it any number."`
	MaxMessages       uint32        `placeholder:"N" group:"Limits" help:"Messages that a conversation may have, those of all branches together. Without it any number."`
	RateLimit         float64       `placeholder:"N" group:"Limits" help:"Requests of one key in a second, in the long run. Without it any number."`
	FailureLimit      float64       `default:"10" placeholder:"N" group:"Limits" help:"Requests without a good key that one address may send in a second, in the long run, and ten times as many at once (${default}). 0 is any number."`
	RateBurst         uint32        `placeholder:"N" group:"Limits" help:"Requests of one key at once. Without it, what --rate-limit allows in 10 s."`
	MaxBodyBytes      int64         `default:"1048576" placeholder:"BYTES" group:"Limits" help:"Size that a request may have (${default})."`
	MaxConversation   int64         `name:"max-import-conversation-bytes" default:"67108864" placeholder:"BYTES" group:"Limits" help:"Size that one conversation of such a file may have (${default}). It is held in memory several times over."`
	ImportSummaries   string        `enum:"keep, drop" default:"keep" placeholder:"keep|drop" group:"Limits" help:"What to do with the summaries of files imported over REST, which nobody has checked: keep them, marked as imported, or drop them (${default})."`
	MaxImportBytes    int64         `default:"1073741824" placeholder:"BYTES" group:"Limits" help:"Size that a file imported over REST may have (${default})."`
}

func (cmd *serveCommand) Run(ctx context.Context, out *console, logs *logFlags) error {
	collectLess()
	log := logs.logger(out.errors, slog.LevelInfo)
	tracing, err := startTracing(ctx, log)
	if err != nil {
		return err
	}
	defer tracing.stop(log)
	log = tracing.logger(log)
	families, err := cmd.families()
	if err != nil {
		return err
	}
	config, models, err := cmd.contextsConfig(log)
	if err != nil {
		return err
	}
	repliers, err := cmd.repliers(families)
	if err != nil {
		return err
	}
	config.Settings = cmd.fitWindow(config.Settings, repliers, families)
	// Before the rest, so that a port that is taken shows before anything is
	// done. Clients that come early wait until the server is ready.
	listener, err := listen(ctx, "--addr", cmd.Addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	stopPprof, err := servePprof(ctx, cmd.PprofAddr, log)
	if err != nil {
		return err
	}
	defer stopPprof()
	d, err := cmd.openDatabase(ctx, tracing, log)
	if err != nil {
		return err
	}
	defer d.close()
	if err := cmd.checkOpen(ctx, d, listener, log); err != nil {
		return err
	}
	if cmd.Demo {
		if err := importDemo(ctx, d.store(tree.DefaultTenant), log); err != nil {
			return err
		}
	}
	cmd.announce(log)
	cmd.announceReplies(repliers, log)
	watch, err := newWatch(d, tracing)
	if err != nil {
		return err
	}
	contexts, err := newServerContexts(d, config, models, watch)
	if err != nil {
		return err
	}
	worker, err := cmd.newWorker(d, contexts, listener, watch, log)
	if err != nil {
		return err
	}
	limits := tree.Limits{Conversations: int(cmd.MaxConversations), MessagesPerConversation: int(cmd.MaxMessages)}
	store := tree.New(d.pool, tree.WithAppendHook(worker), tree.WithLimits(limits))
	replies, err := cmd.newReplies(store, contexts, repliers, families, watch, log)
	if err != nil {
		return err
	}
	api, err := server.New(server.Config{
		Store:                 store,
		Keys:                  keys.New(d.pool),
		Contexts:              contexts,
		Replies:               replies,
		ModelWindow:           windowOf(families),
		RequireKey:            !loopback(listener) && !cmd.Insecure,
		Loopback:              loopback(listener),
		AllowedHosts:          cmd.AllowHost,
		AllowedOrigins:        cmd.AllowOrigin,
		RequestTimeout:        cmd.RequestTimeout,
		CompactionTimeout:     cmd.CompactionTimeout,
		MaxBodyBytes:          cmd.MaxBodyBytes,
		MaxImportBytes:        cmd.MaxImportBytes,
		DropImportedSummaries: cmd.ImportSummaries == "drop",
		MaxConversation:       cmd.MaxConversation,
		MaxReads:              max(int(cmd.MaxConns)/2, 1), // so that slow readers leave connections to others
		MaxSearches:           max(int(cmd.MaxConns)/4, 1),
		MaxStreams:            cmd.MaxStreams,
		FailureLimit:          cmp.Or(cmd.FailureLimit, -1),
		RateLimit:             cmd.RateLimit,
		RateBurst:             int(cmd.RateBurst),
		Ready:                 func(ctx context.Context) error { return checkSchema(ctx, d.pool) },
		Registry:              watch.registry,
		Tracing:               tracing.tracer(),
		Logger:                log,
		Version:               readBuildInfo().Version,
	})
	if err != nil {
		return err
	}
	stop, err := startWorker(ctx, worker, d, log)
	if err != nil {
		return err
	}
	defer stop() // when no request can queue any more, and before the database closes
	return cmd.serve(ctx, d, listener, api.HTTPServer(cmd.Addr), replies, log)
}

// gcPercent is how much a server's heap may grow before it is collected, where
// the variable GOGC doesn't say. The heap is small, and half of it the
// tokenizer's vocabulary: with Go's 100 it would be collected every 26 contexts
// of 200 messages, which was a tenth of their time. With 200 that is halved,
// and a busy server holds some 100 MB in all.
const gcPercent = 200

func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// openDatabase opens and migrates the database. The private Postgres has to be
// this program's own: one server owns it.
func (cmd *serveCommand) openDatabase(ctx context.Context, t tracing, log *slog.Logger) (*database, error) {
	config := db.Config{URL: cmd.DatabaseURL, MaxConns: cmd.MaxConns, StatementTimeout: cmd.StatementTimeout, Tracer: t.statementTracer()}
	if config.URL == "" {
		return startPrivate(ctx, &cmd.databaseFlags, config, true, log)
	}
	if _, _, err := migrate(ctx, config.URL, log); err != nil {
		return nil, err
	}
	d, err := connect(ctx, config, log)
	if err != nil {
		return nil, err
	}
	if err := d.announcePooler(ctx, config); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// checkOpen refuses to serve other machines while there is no key that they
// would need.
func (cmd *serveCommand) checkOpen(ctx context.Context, d *database, listener net.Listener, log *slog.Logger) error {
	if loopback(listener) {
		return nil
	}
	made, err := keys.New(d.pool).Any(ctx)
	if err != nil || made {
		return err
	}
	if !cmd.Insecure {
		return fmt.Errorf("%s can be reached from other machines, and no API key was made yet, so anybody could read and write everything. "+
			"Make a key first (coppice keys create NAME), listen on 127.0.0.1, or accept it by --insecure", cmd.Addr)
	}
	log.Warn("serving other machines without API keys: whoever reaches this server reads and writes everything", "addr", cmd.Addr)
	return nil
}

// lostPatience is how long running requests get to say that there is no database
// any more.
const lostPatience = time.Second

// serve serves until ctx is done or the private Postgres has ended for good, and
// then lets running requests finish.
func (cmd *serveCommand) serve(ctx context.Context, d *database, listener net.Listener, server *http.Server, replies *reply.Service, log *slog.Logger) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	log.Info("listening", "url", baseURL(listener), "version", readBuildInfo().Version)

	var failure error
	patience := cmd.ShutdownTimeout
	select {
	case err := <-ended:
		return fmt.Errorf("serving %s: %w", cmd.Addr, err)
	case <-d.lost():
		failure = d.lossError()
		patience = min(patience, lostPatience)
	case <-ctx.Done():
		log.Info("stopping: running requests finish first", "timeout", cmd.ShutdownTimeout)
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	closed := cmd.closeReplies(ctx, replies, log) // meanwhile, as their clients' requests last as long as they do
	if err := server.Shutdown(grace); err != nil {
		log.Warn("requests were cut off", "error", err)
		server.Close()
	}
	if failure == nil { // else there is nowhere to store them
		<-closed
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(failure, err)
	}
	log.Info("stopped serving")
	return failure
}
