// Package migrate brings the schema of a database up to date: the tables of the
// tree by goose, and the tables of the background jobs by River. Package db reads
// and writes the tables, and imports neither goose nor River.
package migrate

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/citus"
	"github.com/coppice-chat/coppice/fault"
)

//go:embed migrations/*.sql
var files embed.FS

// Files returns the schema's migrations, one SQL file each, in order. A migration
// runs in a transaction, and begins with the line that bounds its waits for locks. It
// only adds, because programs of the version before work on the schema while a new
// version is rolled out. One that takes something away, renames it or makes it
// stricter sets installation.oldest_program to its own number.
func Files() fs.FS {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}

// ErrEncoding says that the database has another encoding than UTF8, in which not
// every message can be stored.
var ErrEncoding = errors.New("the database's encoding is not UTF8: create it with `create database … encoding 'UTF8' template template0`")

// first is the version of the oldest schema that can be brought up to date: the
// whole schema is one migration of this number.
const first = 23

// ErrTooOld says that the database was made before the migrations were squashed
// into one.
var ErrTooOld = fmt.Errorf("the database's schema is older than version %d, the oldest that this program migrates: "+
	"run coppice migrate of commit 282e00d on it first, and then this program again", first)

// Up brings the schema of a database up to date, and returns its version before and
// after. It uses the URL, the Schema and the Logger of cfg. It makes the Schema where
// there is none, and touches no table beside it. The log tells where Up waits for
// another program: for one that migrates, or for one whose transaction uses a table.
// Several programs may call it at once: one of them works, and
// the others wait. A schema that is newer than the program stays as it is: Up
// returns a [db.ErrSchemaNewer] where the program can't work with it. Where the
// database's encoding isn't UTF8, it returns an ErrEncoding, and where its schema
// is too old, an ErrTooOld. It changes nothing then.
func Up(ctx context.Context, cfg db.Config) (before, after int64, err error) {
	defer db.Wrap(&err, "migrate.Up")
	return up(ctx, cfg, db.SchemaVersion)
}

// To makes a schema of a version, which a backup of that version is restored into.
// The errors are Up's.
func To(ctx context.Context, cfg db.Config, version int64) (err error) {
	defer db.Wrap(&err, "migrate.To(%d)", version)
	if version < first {
		return fmt.Errorf("%w; it is %d", ErrTooOld, version)
	}
	_, _, err = up(ctx, cfg, version)
	return err
}

func up(ctx context.Context, cfg db.Config, version int64) (before, after int64, err error) {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	conf, err := cfg.Parse()
	if err != nil {
		return 0, 0, err
	}
	if !db.ChoosesExecMode(cfg.URL) {
		// What is prepared on one connection of a pooler isn't on the next, and
		// doesn't outlive a change of its tables either.
		conf.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	conf.ConnConfig.RuntimeParams["application_name"] = programName
	conn := stdlib.OpenDB(*conf.ConnConfig, stdlib.OptionAfterConnect(citus.InSequence))
	defer conn.Close()
	unlock, err := lockMigrations(ctx, conf.ConnConfig, log)
	if err != nil {
		return 0, 0, err
	}
	defer unlock()
	if err := checkEncoding(ctx, conn); err != nil {
		return 0, 0, err
	}
	if err := makeSchema(ctx, conn, cfg.Schema); err != nil {
		return 0, 0, err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, conn, Files())
	if err != nil {
		return 0, 0, err
	}
	before, err = provider.GetDBVersion(ctx) // which makes goose's table
	if err != nil {
		return 0, 0, mayNot(err, conf.ConnConfig)
	}
	sources := provider.ListSources()
	if before > sources[len(sources)-1].Version {
		return before, before, checkNewer(ctx, conf.ConnConfig)
	}
	if before > 0 && before < first {
		return before, before, fmt.Errorf("%w; it is %d", ErrTooOld, before)
	}
	locks := newBlockers(conf.ConnConfig, log)
	if err := locks.run(ctx, func() error { _, err := provider.UpTo(ctx, version); return err }); err != nil {
		return before, before, err
	}
	after, err = provider.GetDBVersion(ctx)
	if err != nil {
		return before, after, err
	}
	if err := citus.DistributeNew(ctx, conf.ConnConfig, locks.run); err != nil {
		return before, after, err
	}
	return before, after, migrateJobs(ctx, conf, locks)
}

// schemaLock is the key of the advisory lock under which the database is migrated.
const schemaLock = lock.DefaultLockID

const (
	lockPause = 100 * time.Millisecond // between two attempts to lock the migrations
	tellAfter = time.Second            // of waiting for them, and then every so often
	tellAgain = 15 * time.Second
)

// lockMigrations waits until nobody else migrates the database, and keeps others
// from it until unlock is called. The lock is a transaction's, which stays open
// meanwhile: a pooler would keep a session's lock, for the program that gets the
// connection next. Programs that wait hold no connection of a pooler.
func lockMigrations(ctx context.Context, conf *pgx.ConnConfig, log *slog.Logger) (unlock func(), err error) {
	answered := db.TellOfSilence(log, conf)
	conn, err := pgx.ConnectConfig(ctx, conf)
	answered()
	if err != nil {
		return nil, err
	}
	unlock = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, _ = conn.Exec(ctx, "rollback") // the end of the connection does the same, at some time
		conn.Close(ctx)
	}
	begin, tell := time.Now(), tellAfter
	for {
		locked, err := tryLock(ctx, conn)
		if err != nil {
			unlock()
			return nil, err
		}
		if locked {
			return unlock, nil
		}
		if waited := time.Since(begin); waited >= tell {
			tellWait(ctx, conn, log, waited)
			tell = waited + tellAgain
		}
		select {
		case <-ctx.Done():
			unlock()
			return nil, context.Cause(ctx)
		case <-time.After(lockPause):
		}
	}
}

// tellWait logs which session the migrations wait for.
func tellWait(ctx context.Context, conn *pgx.Conn, log *slog.Logger, waited time.Duration) {
	var pid int
	var state string
	var since time.Duration
	err := conn.QueryRow(ctx, `select a.pid, coalesce(a.state, ''), extract(epoch from now() - a.state_change)::bigint * 1000000000
		from pg_locks l join pg_stat_activity a on a.pid = l.pid
		where l.locktype = 'advisory' and l.granted and l.database = (select oid from pg_database where datname = current_database())
			and (l.classid::bigint << 32 | l.objid::bigint) = $1
		limit 1`, int64(schemaLock)).Scan(&pid, &state, &since)
	if err != nil { // it is free by now, or else the next attempt tells
		return
	}
	log.WarnContext(ctx, "waiting for another program that migrates the database; if none does, a session kept its lock: end it with select pg_terminate_backend(pid)",
		"pid", pid, "state", state, "in_state_for", since.String(), "waited", waited.Round(time.Second).String())
}

// tryLock takes the lock in a transaction, or ends the transaction.
func tryLock(ctx context.Context, conn *pgx.Conn) (locked bool, err error) {
	if _, err := conn.Exec(ctx, "begin; set local idle_in_transaction_session_timeout = 0"); err != nil {
		return false, err
	}
	err = conn.QueryRow(ctx, "select pg_try_advisory_xact_lock($1)", int64(schemaLock)).Scan(&locked)
	if err == nil && !locked {
		_, err = conn.Exec(ctx, "rollback")
	}
	return locked, err
}

// mayNot says how to mend that the role lacks a right.
func mayNot(err error, conf *pgx.ConnConfig) error {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != "42501" {
		return err
	}
	role, database := pgx.Identifier{conf.User}.Sanitize(), pgx.Identifier{conf.Database}.Sanitize()
	return fault.New(fault.Invalid, "", "", "the role may not make or change tables in the database (%s): run `alter database %s owner to %s` as its owner or a superuser", answer.Message, database, role)
}

// checkNewer tells whether the program works with a schema that is newer.
func checkNewer(ctx context.Context, conf *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, conf)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return db.CheckSchema(ctx, conn)
}

// makeSchema makes the schema, unless it is there or none is named. The role needs no
// right to make one that is there.
func makeSchema(ctx context.Context, conn *sql.DB, name string) error {
	if name == "" {
		return nil
	}
	var there bool
	if err := conn.QueryRowContext(ctx, "select exists (select from pg_namespace where nspname = $1)", name).Scan(&there); err != nil || there {
		return err
	}
	_, err := conn.ExecContext(ctx, "create schema "+pgx.Identifier{name}.Sanitize())
	return err
}

func checkEncoding(ctx context.Context, conn *sql.DB) error {
	var encoding string
	if err := conn.QueryRowContext(ctx, "show server_encoding").Scan(&encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("%w; it is %s", ErrEncoding, encoding)
	}
	return nil
}

// migrateJobs makes River's own tables, which hold the background jobs. River
// keeps their version itself.
func migrateJobs(ctx context.Context, conf *pgxpool.Config, locks *blockers) error {
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	for done := false; !done && err == nil; {
		err = locks.run(ctx, func() error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "set local "+lockTimeout); err != nil {
					return err
				}
				// A step uses what the step before committed.
				//lint:ignore SA1019 each step has a transaction of its own, which bounds its waits
				step, err := migrator.MigrateTx(ctx, tx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{MaxSteps: 1})
				done = err == nil && len(step.Versions) == 0
				return err
			})
		})
	}
	return err
}
