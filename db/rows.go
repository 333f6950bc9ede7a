package db

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// What the methods of Queries do with what Postgres answers; shorten.go puts these calls there.

// all reads rows of several columns, and allValue of one. No rows are a nil slice.
func all[R any](rows pgx.Rows, err error) ([]R, error) {
	return collect(rows, err, pgx.RowToStructByPos[R])
}

func allValue[R any](rows pgx.Rows, err error) ([]R, error) { return collect(rows, err, pgx.RowTo[R]) }

func collect[R any](rows pgx.Rows, err error, read pgx.RowToFunc[R]) ([]R, error) {
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows([]R(nil), rows, read)
}

// one reads a row of several columns, and oneValue of one. No row is a pgx.ErrNoRows.
func one[R any](rows pgx.Rows, err error) (R, error) {
	return first(rows, err, pgx.RowToStructByPos[R])
}

func oneValue[R any](rows pgx.Rows, err error) (R, error) { return first(rows, err, pgx.RowTo[R]) }

func first[R any](rows pgx.Rows, err error, read pgx.RowToFunc[R]) (none R, _ error) {
	if err != nil {
		return none, err
	}
	return pgx.CollectOneRow(rows, read)
}

// affected is how many rows a command changed.
func affected(tag pgconn.CommandTag, err error) (int64, error) { return tag.RowsAffected(), err }
