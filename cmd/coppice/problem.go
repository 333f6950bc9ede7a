package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/db/upgrade"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/terminal"
)

// report prints what went wrong, for people, and returns the exit code.
func report(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, syscall.EPIPE) && !connectionBroke(err):
		return exitBrokenPipe // who doesn't read on doesn't want to hear of it
	case interrupted(ctx, err):
		fmt.Fprintln(os.Stderr, "coppice: interrupted")
		return exitInterrupt
	}
	fmt.Fprintf(os.Stderr, "coppice: %s\n", explain(err))
	var usage *usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// interrupted tells whether an error is what a signal led to.
func interrupted(ctx context.Context, err error) bool {
	if ctx.Err() == nil {
		return false
	}
	var answer *pgconn.PgError
	return errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx)) ||
		errors.As(err, &answer) && answer.Code == "57014" // query_canceled
}

// A usageError is a mistake in the command line that only the command could
// see.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// flagUsage is the mistake in the flag of the field that a server finds wrong. Any other
// error stays as it is.
func flagUsage(err error, flags map[string]string) error {
	var wrong *fault.Error
	if !errors.As(err, &wrong) || wrong.Kind != fault.Invalid && wrong.Kind != fault.TooLarge || flags[wrong.Field] == "" {
		return err
	}
	return usagef("%s: %s", flags[wrong.Field], wrong.Detail)
}

// explain says what is wrong and how to fix it. Of an error that was made for
// people it leaves out where in the program it arose.
func explain(err error) string {
	var (
		known       *fault.Error
		inUse       *embedded.InUseError
		version     *embedded.VersionError
		foreign     *upgrade.ForeignError
		usage       *usageError
		answer      *pgconn.PgError
		unreachable *app.UnreachableError
		path        *fs.PathError
	)
	switch {
	case errors.As(err, &usage):
		return usage.text
	case errors.As(err, &known) && known.Err == nil:
		return known.Reason()
	case errors.As(err, &inUse):
		return inUse.Error()
	case errors.As(err, &version):
		return version.Error()
	case errors.As(err, &foreign):
		return foreign.Error()
	case errors.Is(err, embedded.ErrNoCluster):
		return embedded.ErrNoCluster.Error()
	case errors.Is(err, embedded.ErrNoPostgres):
		return embedded.ErrNoPostgres.Error()
	case errors.As(err, &unreachable):
		return unreachableProblem(unreachable)
	case fault.Refused(err): // such as a file whose end too is one that wasn't expected, and not the database's
		return reason(err)
	case errors.As(err, &answer) && answer.Code == "53100":
		return "the disk of the database is full: " + answer.Message + ". Free space on it, or enlarge it. What the command had finished is kept"
	case errors.As(err, &answer) && answer.Code == "25006":
		return "the database takes no writes: is it a standby, or set to read only? Give the address of its primary"
	case errors.As(err, &answer) && strings.HasPrefix(answer.Code, "57P0"):
		return "the database was shut down under this command. What it had finished is kept; run it again"
	case connectionBroke(err):
		return "the connection to the database broke under this command. What it had finished is kept; run it again"
	case errors.As(err, &path) && errors.Is(err, fs.ErrNotExist):
		return path.Path + ": there is no such file"
	}
	return reason(err)
}

// reason is an error's text without the calls that failed.
func reason(err error) string {
	if known, ok := err.(*fault.Error); ok {
		return known.Reason()
	}
	return err.Error()
}

// connectionBroke tells whether the connection to the database broke: amid an
// answer, or before a statement could be sent; or whether no other could be made.
func connectionBroke(err error) bool {
	var notConnected *pgconn.ConnectError
	return errors.As(err, &notConnected) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, syscall.ECONNRESET) || pgconn.SafeToRetry(err)
}

// unreachableProblem names the database server that can't be reached, and never
// the password.
func unreachableProblem(e *app.UnreachableError) string {
	const hint = "check --database-url, or the variable DATABASE_URL"
	config, err := pgconn.ParseConfig(e.URL)
	if mode := sslMode(e.URL); err != nil && mode != "" && !slices.Contains(sslModes, mode) {
		return fmt.Sprintf("the database URL has sslmode=%s: give %s", terminal.OneLine(mode, 40), strings.Join(sslModes, ", "))
	}
	if err != nil {
		return "the database URL can't be read: give it as postgres://user:password@host/database, by --database-url or the variable DATABASE_URL"
	}
	var (
		answer *pgconn.PgError
		name   *net.DNSError
		dial   *net.OpError
		why    = reason(e.Err)
	)
	switch {
	case errors.As(e.Err, &answer):
		return fmt.Sprintf("the database server %s:%d refuses the connection: %s: %s", config.Host, config.Port, answer.Message, hint)
	case errors.As(e.Err, &name):
		why = name.Err
	case errors.As(e.Err, &dial):
		why = dial.Err.Error()
	case errors.Is(e.Err, context.DeadlineExceeded):
		why = "it took too long"
	}
	return fmt.Sprintf("the database server %s:%d doesn't answer (%s): %s", config.Host, config.Port, terminal.OneLine(why, 300), hint)
}

// sslModes are those that a database URL may have.
var sslModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// sslMode is the sslmode of a database URL; "" for none.
func sslMode(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Query().Get("sslmode")
}
