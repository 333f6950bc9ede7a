package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
)

// People read one line: what is wrong and what to do, not the way through the program.
func TestExplain(t *testing.T) {
	t.Parallel()
	refused := fault.New(fault.Invalid, "c", "title", "It is too long.")
	_, notConnected := pgconn.Connect(t.Context(), "postgres://ada:secret@/x?host="+t.TempDir())
	tests := []struct {
		err  error
		want string
	}{
		{failed("tree.UpdateConversation(1)", refused), "title: It is too long."},
		{failed("embedded.Start(/d)", &embedded.InUseError{DataDir: "/d", PID: 7}), (&embedded.InUseError{DataDir: "/d", PID: 7}).Error()},
		{failed("embedded.Start(/d)", embedded.ErrNoPostgres), embedded.ErrNoPostgres.Error()},
		{failed("migrate.Up", db.ErrSchemaNewer), db.ErrSchemaNewer.Error()},
		{failed("transfer.Import", fmt.Errorf("chatgpt: %w", errors.New("offset 7: odd"))), "chatgpt: offset 7: odd"},
		{failed("transfer.Import", fault.New(fault.Invalid, transfer.CodeFormat, "", "the content is of no format that is read here")), "the content is of no format that is read here"},
		{&fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}, "/x: there is no such file"},
		{failed("tree.Import", &pgconn.PgError{Code: "53100", Message: "could not extend file"}), "the disk of the database is full: could not extend file. Free space on it, or enlarge it. What the command had finished is kept"},
		{failed("tree.Import", &pgconn.PgError{Code: "25006"}), "the database takes no writes: is it a standby, or set to read only? Give the address of its primary"},
		{&app.UnreachableError{URL: "postgres://ada:secret@db.example/x?sslmode=maybe", Err: errors.New("odd")}, "the database URL has sslmode=maybe: give disable, allow, prefer, require, verify-ca, verify-full"},
		{failed("tree.Import", &pgconn.PgError{Code: "57P01"}), "the database was shut down under this command. What it had finished is kept; run it again"},
		{importError(t, `[{"uuid":"a","name":"A","chat_messages":[{"uuid":"m","sender":"human","text":"Hello."}`), "claude: the file is cut off: it ends in the middle of element 1, at byte 86; export or copy it again"},
		{failed("migrate.Up", io.ErrUnexpectedEOF), "the connection to the database broke under this command. What it had finished is kept; run it again"},
		{failed("tree.Import", unsentError{syscall.EPIPE}), "the connection to the database broke under this command. What it had finished is kept; run it again"},
		{failed("tree.Import", notConnected), "the connection to the database broke under this command. What it had finished is kept; run it again"},
		{&app.UnreachableError{URL: "postgres://ada:secret@db.example:5432/x", Err: context.DeadlineExceeded}, "the database server db.example:5432 doesn't answer (it took too long): check --database-url, or the variable DATABASE_URL"},
		{&app.UnreachableError{URL: "postgres://ada:secret@db.example/x", Err: &pgconn.PgError{Message: "password authentication failed"}}, "the database server db.example:5432 refuses the connection: password authentication failed: check --database-url, or the variable DATABASE_URL"},
		{&app.UnreachableError{URL: "postgres://ada:secret@db.example/x", Err: failed("migrate.Up", &net.DNSError{Err: "no such host", Name: "db.example"})}, "the database server db.example:5432 doesn't answer (no such host): check --database-url, or the variable DATABASE_URL"},
		{&app.UnreachableError{URL: "postgres://ada:secret@db.example/x", Err: failed("db.Open", errors.New("odd"))}, "the database server db.example:5432 doesn't answer (odd): check --database-url, or the variable DATABASE_URL"},
	}
	for _, tt := range tests {
		got := explain(tt.err)
		check.That(t, got == tt.want, "explain(%v)\n got %s\nwant %s", tt.err, got, tt.want)
	}
}

// failed is an error as a function of the program gives it.
func failed(call string, err error) error {
	db.Wrap(&err, "%s", call)
	return err
}

// importError is the error of importing a file.
func importError(t *testing.T, file string) error {
	t.Helper()
	_, err := transfer.Import(t.Context(), nil, strings.NewReader(file), transfer.Options{DryRun: true})
	return err
}

// A broken pipe to the database is a failure, one to the reader of the output is none.
func TestReportTellsBrokenPipesApart(t *testing.T) {
	t.Parallel()
	code := report(t.Context(), failed("tree.Import", unsentError{syscall.EPIPE}))
	check.That(t, code == exitFailed, "the database's: exit code %d, want %d", code, exitFailed)
	code = report(t.Context(), &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE})
	check.That(t, code == exitBrokenPipe, "the output's: exit code %d, want %d", code, exitBrokenPipe)
}

// unsentError is as pgconn's where a statement could not be sent.
type unsentError struct{ error }

func (e unsentError) Unwrap() error   { return e.error }
func (unsentError) SafeToRetry() bool { return true }
