package db

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/coppice-chat/coppice/fault"
)

// Wrap is fault.Wrap for functions that ask the database. It gives the database's
// errors their kinds.
func Wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = classified(*err)
		fault.Wrap(err, format, args...)
	}
}

// classified is the one place that tells errors of Postgres and of the
// connection apart. What the program said itself, and what came of a context,
// stays as it is.
func classified(err error) error {
	var known *fault.Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		if slices.Contains([]string{"XX000", "58030"}, answer.Code) && slices.Contains(toNodes, answer.File) {
			return errUnavailable.From(err)
		}
		return kindOf(answer.Code, err)
	}
	var network net.Error
	// SafeToRetry: nothing of the statement was sent, as the connection had
	// broken before. ErrClosedPool: the program is ending.
	if errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err) || errors.Is(err, puddle.ErrClosedPool) {
		return errUnavailable.From(err)
	}
	return err
}

// toNodes are the parts of Citus that speak with other nodes. Where a node or the
// coordinator is killed, they answer with the code of a defect, or that of a file that
// can't be read. A copy of rows to a node loses the codes of all that the node says.
var toNodes = []string{"adaptive_executor.c", "connection_management.c", "intermediate_results.c", "multi_copy.c", "placement_connection.c", "remote_commands.c"}

// kindOf gives an answer of Postgres its kind, by its SQLSTATE.
func kindOf(code string, err error) error {
	switch code {
	case "57014", // query_canceled, by statement_timeout
		"55P03", // lock_not_available
		"40P01": // deadlock_detected
		return errTimeout.From(err)
	case "53100": // disk_full
		return errStorageFull.From(err)
	case "25006": // read_only_sql_transaction: a replica, or a hosted database whose disk is full
		return errReadOnly.From(err)
	}
	switch class := code[:min(2, len(code))]; {
	case class == "08", class == "53", len(code) > 3 && code[:3] == "57P", code == "25P03": // connection, resources, shutdown, idle_in_transaction_session_timeout
		return errUnavailable.From(err)
	case class == "22", class == "23", class == "54": // data exception, integrity constraint violation, program limit exceeded
		// The same data is refused again, while a connection that broke, a lock
		// that was waited for too long, a full disk or a table that is away says
		// nothing of the data.
		return &fault.Error{Kind: fault.Permanent, Err: err}
	}
	return err
}

var (
	errTimeout = fault.New(fault.Timeout, "timeout", "",
		"The database took too long and the request was given up. If it was to change something, send it again with the same id.")
	errUnavailable = fault.New(fault.Unavailable, "database_unavailable", "",
		"The database doesn't answer. If the request was to change something, send it again with the same id.")
	errStorageFull = fault.New(fault.Unavailable, "storage_full", "",
		"The disk of the database is full, so nothing was stored. Whoever runs the server must free space on it or enlarge it. Then send the request again with the same id.")
	errReadOnly = fault.New(fault.Unavailable, "database_read_only", "",
		"The database takes no writes, so nothing was stored. It is a replica or was set to read only, as hosted databases are when their disk is full. "+
			"Whoever runs the server must mend that. Then send the request again with the same id.")
)
