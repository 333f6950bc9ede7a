package db_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

// unsent is an error of a statement that was never sent.
type unsent struct{ error }

func (unsent) SafeToRetry() bool { return true }

// closedPool is the error of a query on a pool that was closed.
func closedPool(t *testing.T) error {
	pool := check.Must(pgxpool.New(t.Context(), "postgres://127.0.0.1/nowhere"))(t)
	pool.Close()
	_, err := pool.Exec(t.Context(), "select 1")
	return err
}

func TestWrapTellsErrorsApart(t *testing.T) {
	t.Parallel()
	state := func(code string) error { return &pgconn.PgError{Code: code, Message: "so it is"} }
	missing := fault.New(fault.NotFound, "message_not_found", "", "There is none.")
	for _, test := range []struct {
		err  error
		kind fault.Kind
		code string
	}{
		{state("57014"), fault.Timeout, "timeout"},
		{state("55P03"), fault.Timeout, "timeout"},
		{state("40P01"), fault.Timeout, "timeout"},
		{state("08006"), fault.Unavailable, "database_unavailable"},
		{state("53300"), fault.Unavailable, "database_unavailable"},
		{state("53100"), fault.Unavailable, "storage_full"},
		{state("25006"), fault.Unavailable, "database_read_only"},
		{state("57P01"), fault.Unavailable, "database_unavailable"},
		{state("25P03"), fault.Unavailable, "database_unavailable"},
		{&pgconn.PgError{Code: "XX000", File: "placement_connection.c"}, fault.Unavailable, "database_unavailable"}, // of Citus
		{&pgconn.PgError{Code: "XX000", File: "multi_copy.c"}, fault.Unavailable, "database_unavailable"},
		{&pgconn.PgError{Code: "58030", File: "multi_copy.c"}, fault.Unavailable, "database_unavailable"},
		{&pgconn.PgError{Code: "23505", File: "multi_copy.c"}, fault.Permanent, ""},
		{state("XX000"), fault.Internal, ""},
		{state("58030"), fault.Internal, ""},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, fault.Unavailable, "database_unavailable"},
		{io.ErrUnexpectedEOF, fault.Unavailable, "database_unavailable"},
		{unsent{errors.New("closed")}, fault.Unavailable, "database_unavailable"},
		{closedPool(t), fault.Unavailable, "database_unavailable"},
		{state("22P02"), fault.Permanent, ""},
		{state("23505"), fault.Permanent, ""},
		{state("54000"), fault.Permanent, ""},
		{state("42P01"), fault.Internal, ""},
		{state("40001"), fault.Internal, ""},
		{state("57"), fault.Internal, ""},
		{state(""), fault.Internal, ""},
		{pgx.ErrNoRows, fault.Internal, ""},
		{errors.New("odd"), fault.Internal, ""},
		{context.Canceled, fault.Canceled, ""},
		{context.DeadlineExceeded, fault.Timeout, ""},
		{&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, fault.Timeout, ""},
		{missing, fault.NotFound, "message_not_found"},
		{missing.From(state("57014")), fault.NotFound, "message_not_found"}, // the program knows best
	} {
		err := fmt.Errorf("wrapped: %w", test.err)
		db.Wrap(&err, "tree.View(%d)", 1)
		e := fault.Of(err)
		check.That(t, e.Kind == test.kind && e.Code == test.code && (e.Detail == "") == (test.code == ""),
			"%v: %q of kind %q, want %q of kind %q", test.err, e.Code, e.Kind, test.code, test.kind)
		want := "tree.View(1): wrapped: " + test.err.Error()
		check.That(t, err.Error() == want && errors.Is(err, test.err), "the text is %q, want %q", err, want)
	}
	var none error
	if db.Wrap(&none, "tree.View"); none != nil {
		t.Error("an error came out of none")
	}
}
