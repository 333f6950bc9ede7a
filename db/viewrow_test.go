package db_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-chat/coppice/db"
)

// What pgx gives where a statement can't be sent any more: rows that know no
// columns, and their error only when they are read.
type cutRows struct {
	pgx.Rows
	err error
}

func (r cutRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (r cutRows) Next() bool                                   { return false }
func (r cutRows) Err() error                                   { return r.err }
func (r cutRows) Close()                                       {}

type cutHandle struct {
	db.Handle
	err error
}

func (h cutHandle) Query(context.Context, string, ...any) (pgx.Rows, error) {
	return cutRows{err: h.err}, nil
}

func TestEachViewRowOverCutConnection(t *testing.T) {
	t.Parallel()
	cut := errors.New("broken pipe")
	err := db.EachViewRow(t.Context(), cutHandle{err: cut}, db.GetViewParams{}, func(*db.GetViewRow) error {
		t.Error("there is a row")
		return nil
	})
	if !errors.Is(err, cut) {
		t.Errorf("%v", err)
	}
}
