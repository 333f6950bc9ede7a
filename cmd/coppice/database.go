package main

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

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

const (
	// openPatience is how long a command waits for another one that is about to
	// start the private Postgres, or to stop it.
	openPatience = 15 * time.Second
	// migratePatience is how long it waits where the schema is older: the other
	// one may be about to migrate it, or be an older program and done.
	migratePatience = 10 * time.Second
	// stopPatience is how long the private Postgres may take to stop; after it,
	// its next start has something to replay.
	stopPatience = 10 * time.Second
	// slowStart is how long a command starts in silence.
	slowStart = 3 * time.Second
	// commandConns are enough for a command, which does one thing at a time.
	commandConns = 2
)

// A database is the Postgres that a command works on, with its schema in
// place.
type database struct {
	pool    *pgxpool.Pool
	url     string
	private *embedded.Server // nil unless this program started it
	dataDir string           // of private
	log     *slog.Logger
}

// openDatabase opens the database for a command. That is the one at the
// database URL if there is one; else the private Postgres that a running
// program has on the data directory; else one that the command starts, and
// stops in close.
//
// Only what the command started itself does it migrate. Of other databases the
// schema has to fit: changing what others work with is for serve and migrate.
func openDatabase(ctx context.Context, f *databaseFlags, log *slog.Logger) (*database, error) {
	config := db.Config{URL: f.DatabaseURL, MaxConns: commandConns}
	if f.DatabaseURL != "" {
		return connect(ctx, config, log)
	}
	// Whoever runs the private Postgres may stop it between our finding it and
	// our connecting to it; whoever holds its lock may not have it running, or
	// migrated, yet.
	for begin, patience := time.Now(), time.Duration(0); ; {
		d, err := openPrivate(ctx, f, config, log)
		if p := passing(err); p != patience { // something else is in the way now
			begin, patience = time.Now(), p
		}
		if err == nil || time.Since(begin) > patience || patience == 0 {
			return d, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func openPrivate(ctx context.Context, f *databaseFlags, config db.Config, log *slog.Logger) (*database, error) {
	url, err := embedded.Attach(f.DataDir)
	if err == nil {
		config.URL = url
		return connect(ctx, config, log)
	}
	if !errors.Is(err, embedded.ErrNotRunning) {
		return nil, err
	}
	return startPrivate(ctx, f, config, false, log)
}

// passing tells for how long an error may be gone in a moment; 0 if it stays.
func passing(err error) time.Duration {
	var inUse *embedded.InUseError
	var unreachable *unreachableError
	var older *olderSchemaError
	switch {
	case errors.As(err, &inUse), errors.As(err, &unreachable), errors.Is(err, errNoSchema):
		return openPatience
	case errors.As(err, &older):
		return migratePatience
	}
	return 0
}

// connect opens a database that others migrate.
func connect(ctx context.Context, config db.Config, log *slog.Logger) (*database, error) {
	pool, err := db.Open(ctx, config)
	if err != nil {
		return nil, &unreachableError{config.URL, err}
	}
	d := &database{pool: pool, url: config.URL, log: log}
	if err := checkSchema(ctx, pool); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// announcePooler says what a pooler between the server and Postgres means, and
// which settings the database lacks because of it.
func (d *database) announcePooler(ctx context.Context, config db.Config) error {
	if !db.Pooled(d.pool) {
		return nil
	}
	missing, err := db.MissingParameters(ctx, d.pool, config)
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

// startPrivate starts the private Postgres and migrates it. On error it is
// stopped again. With restart it is started again when it ends by itself: a
// server goes on then, where a command has failed.
func startPrivate(ctx context.Context, f *databaseFlags, config db.Config, restart bool, log *slog.Logger) (_ *database, err error) {
	server, err := embedded.Start(ctx, embedded.Config{DataDir: f.DataDir, CacheDir: f.CacheDir, Restart: restart, Logger: log})
	if err != nil {
		return nil, err
	}
	d := &database{url: server.URL(), private: server, dataDir: f.DataDir, log: log}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if _, _, err := migrate(ctx, d.url, log); err != nil {
		return nil, err
	}
	config.URL = d.url
	d.pool, err = db.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// migrate brings the schema up to date and returns its version before and
// after.
func migrate(ctx context.Context, url string, log *slog.Logger) (before, after int64, err error) {
	before, after, err = db.Migrate(ctx, url)
	var notParsed *pgconn.ParseConfigError
	var notConnected *pgconn.ConnectError
	if errors.As(err, &notParsed) || errors.As(err, &notConnected) {
		err = &unreachableError{url, err}
	}
	if err == nil && before != after {
		log.Info("migrated the schema", "from", before, "to", after)
	}
	return before, after, err
}

// store gives a tenant's conversations.
func (d *database) store(tenantID string) *tree.Store {
	return tree.New(d.pool).ForTenant(tenantID)
}

// close closes the pool and stops the private Postgres if this program started
// it.
func (d *database) close() {
	// The command's context may be done; stopping well still matters.
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
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
func (d *database) closePool(ctx context.Context) {
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

// awaitOthers closes the pool and returns when no other command is connected to
// the private Postgres that this one is about to stop, or when ctx is done.
func (d *database) awaitOthers(ctx context.Context, out *terminal.Console) {
	if d.private == nil {
		return
	}
	if d.pool != nil {
		d.pool.Close()
	}
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const others = `select exists (select 1 from pg_stat_activity
		where datname = current_database() and application_name = 'coppice' and pid <> pg_backend_pid())`
	begin, said := time.Now(), false
	for {
		var any bool
		if err := conn.QueryRow(ctx, others).Scan(&any); err != nil || !any {
			return
		}
		if !said && time.Since(begin) > time.Second {
			out.Remark("Done. Waiting for another coppice command that uses the Postgres this one started.")
			said = true
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// withDatabase runs a command on its database.
func withDatabase(ctx context.Context, f *databaseFlags, out *terminal.Console, logs *logFlags, do func(*database) error) error {
	slow := time.AfterFunc(slowStart, func() {
		if f.DatabaseURL == "" {
			out.Remark("Starting the private Postgres. The first time, this may include fetching it.")
		}
	})
	d, err := openDatabase(ctx, f, logs.logger(out.Errors, slog.LevelWarn))
	slow.Stop()
	if err != nil {
		return err
	}
	defer d.close()
	err = do(d)
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	d.awaitOthers(ctx, out)
	return err
}

// lost is closed when the private Postgres has ended for good although nobody
// stopped it. It is nil, and blocks, where others run the database.
func (d *database) lost() <-chan struct{} {
	if d.private == nil {
		return nil
	}
	return d.private.Done()
}

// lossError says what became of a private Postgres that ended for good. The end
// of its log is in the program's log already.
func (d *database) lossError() error {
	reason, _, _ := strings.Cut(fmt.Sprint(d.private.Err()), "\n")
	return fmt.Errorf("the private Postgres ended (%s), so the server stops. Start it again: what was acknowledged is kept. "+
		"Postgres' own log is in the data directory, as postgres.log", reason)
}
