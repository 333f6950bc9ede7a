package db

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations are the schema's steps, one SQL file each, in order.
func Migrations() fs.FS {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}

// ErrSchemaNewer tells that the database was migrated by a later version of
// the program.
var ErrSchemaNewer = errors.New("the database's schema is newer than this program: install the version that migrated it, or a later one")

// ErrEncoding tells that the database holds another encoding than UTF8, in
// which not every message can be stored.
var ErrEncoding = errors.New("the database's encoding is not UTF8: create it with `create database … encoding 'UTF8' template template0`")

// Migrate brings the schema of the database at url up to date and returns its
// version before and after. Several programs may call it at once: one works,
// the others wait for it. A schema newer than the program is an
// ErrSchemaNewer, a database of another encoding than UTF8 an ErrEncoding; both
// stay as they are.
func Migrate(ctx context.Context, url string) (before, after int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("db.Migrate: %w", err)
		}
	}()
	conf, err := pgx.ParseConfig(url)
	if err != nil {
		return 0, 0, err
	}
	conn := stdlib.OpenDB(*conf)
	defer conn.Close()
	var encoding string
	if err := conn.QueryRowContext(ctx, "show server_encoding").Scan(&encoding); err != nil {
		return 0, 0, err
	}
	if encoding != "UTF8" {
		return 0, 0, fmt.Errorf("%w; it is %s", ErrEncoding, encoding)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return 0, 0, err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, conn, Migrations(), goose.WithSessionLocker(locker))
	if err != nil {
		return 0, 0, err
	}
	before, err = provider.GetDBVersion(ctx)
	if err != nil {
		return 0, 0, err
	}
	sources := provider.ListSources()
	if before > sources[len(sources)-1].Version {
		return before, before, ErrSchemaNewer
	}
	if _, err := provider.Up(ctx); err != nil {
		return before, before, err
	}
	after, err = provider.GetDBVersion(ctx)
	if err != nil {
		return before, after, err
	}
	return before, after, migrateJobs(ctx, url)
}

// jobsLock is the key of the advisory lock under which River's tables are
// migrated: any number, as long as it stays the same.
const jobsLock = 0x636f7070696365

// migrateJobs makes River's own tables, which hold the background jobs. River
// keeps their version itself, but doesn't mind others who migrate.
func migrateJobs(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	return pool.AcquireFunc(ctx, func(locker *pgxpool.Conn) error {
		if _, err := locker.Exec(ctx, "select pg_advisory_lock($1)", jobsLock); err != nil {
			return err
		}
		// The lock goes with the connection, which goes with the pool.
		migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
		if err != nil {
			return err
		}
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		return err
	})
}
