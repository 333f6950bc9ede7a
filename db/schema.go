package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// SchemaVersion is the version of the schema that the queries are made for. It is
// the number of the newest file in db/migrate/migrations.
const SchemaVersion = 37

// ErrNoSchema says that the database was never migrated.
var ErrNoSchema = errors.New("the database has no Coppice schema yet: run coppice migrate on it, or coppice serve")

// ErrSchemaNewer says that a later version of the program migrated the database,
// and that this one can't work with it.
var ErrSchemaNewer = errors.New("the database's schema is newer than this program: install the version that migrated it, or a later one")

// A SchemaOlderError says that migrations are missing.
type SchemaOlderError struct{ Have, Want int64 }

func (e *SchemaOlderError) Error() string {
	return fmt.Sprintf("the database's schema is version %d, and this program needs %d: run coppice migrate on it. "+
		"If an older coppice serve runs on it, stop that first", e.Have, e.Want)
}

// CheckSchema returns an error that says what to do where the program can't work
// with the schema: where the schema is older than SchemaVersion, or so much newer
// that something the program needs is gone. It changes nothing.
func CheckSchema(ctx context.Context, h DBTX) error {
	var have int64
	err := h.QueryRow(ctx, "select coalesce(max(version_id), 0) from goose_db_version").Scan(&have)
	var answer *pgconn.PgError
	if err != nil && !(errors.As(err, &answer) && answer.Code == "42P01") { // undefined_table
		return fmt.Errorf("db.CheckSchema: reading the schema's version: %w", err)
	}
	switch {
	case have == 0:
		return ErrNoSchema
	case have < SchemaVersion:
		return &SchemaOlderError{have, SchemaVersion}
	case have > SchemaVersion:
		var oldest int64
		if err := h.QueryRow(ctx, "select oldest_program from installation").Scan(&oldest); err != nil {
			return fmt.Errorf("db.CheckSchema: reading which programs the schema serves: %w", err)
		}
		if oldest <= SchemaVersion {
			return nil
		}
		return fmt.Errorf("%w (the schema is version %d, the program's %d)", ErrSchemaNewer, have, SchemaVersion)
	}
	return nil
}
