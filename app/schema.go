package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"

	"github.com/coppice-chat/coppice/db"
)

// checkSchema returns an error that says what to do if the schema is not the
// one that this program is made for. It changes nothing.
func checkSchema(ctx context.Context, pool *pgxpool.Pool) error {
	want, err := newestMigration()
	if err != nil {
		return err
	}
	var have int64
	err = pool.QueryRow(ctx, "select coalesce(max(version_id), 0) from "+goose.DefaultTablename).Scan(&have)
	var answer *pgconn.PgError
	if err != nil && !(errors.As(err, &answer) && answer.Code == "42P01") { // undefined_table
		return fmt.Errorf("reading the schema's version: %w", err)
	}
	switch {
	case have == 0:
		return ErrNoSchema
	case have < want:
		return &OlderSchemaError{have, want}
	case have > want:
		return fmt.Errorf("%w (the schema is version %d, the program's %d)", db.ErrSchemaNewer, have, want)
	}
	return nil
}

// ErrNoSchema tells that nobody has migrated the database yet.
var ErrNoSchema = errors.New("the database has no Coppice schema yet: run coppice migrate on it, or coppice serve")

// An OlderSchemaError tells that the database lacks migrations.
type OlderSchemaError struct{ Have, Want int64 }

func (e *OlderSchemaError) Error() string {
	return fmt.Sprintf("the database's schema is version %d, and this program needs %d: run coppice migrate on it. "+
		"If an older coppice serve runs on it, stop that first", e.Have, e.Want)
}

// newestMigration is the schema version that the program is made for.
func newestMigration() (int64, error) {
	names, err := fs.Glob(db.Migrations(), "*.sql")
	if err != nil {
		return 0, err
	}
	var newest int64
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, err
		}
		newest = max(newest, version)
	}
	return newest, nil
}
