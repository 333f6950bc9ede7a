package db

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
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

// Migrate brings the schema of the database at url up to date and returns its
// version before and after. Several programs may call it at once: one works,
// the others wait for it. A schema newer than the program is an
// ErrSchemaNewer, and stays as it is.
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
	locker, err := lock.NewPostgresSessionLocker()
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
	return before, after, err
}
