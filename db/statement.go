package db

import (
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A Statement is the SQL and the arguments that a method of [Queries] sends.
type Statement struct {
	SQL  string
	Args []any
}

// StatementOf returns what a method of Queries would send. It serves queries that
// are sent together, and queries whose rows are read one by one. sqlc has no
// methods for these.
func StatementOf(call func(*Queries)) Statement {
	var r recorder
	call(New(&r))
	return r.Statement
}

// A recorder keeps the statement that it is given and sends nothing.
type recorder struct{ Statement }

var errRecorded = errors.New("the statement was recorded, not sent")

func (r *recorder) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	r.Statement = Statement{sql, args}
	return pgconn.CommandTag{}, errRecorded
}

func (r *recorder) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	r.Statement = Statement{sql, args}
	return nil, errRecorded
}

func (r *recorder) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	r.Statement = Statement{sql, args}
	return r
}

func (r *recorder) Scan(...any) error { return errRecorded }

func (r *recorder) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	return 0, errRecorded
}

// AppendInTurn sends LockConversation, AppendMessage and the statements given, which
// belong to the message, in one pipeline, in a transaction of their own unless h is
// one: one round trip and one commit. As calls of Queries in a transaction, an append
// over HTTP took 1.24 times as long.
//
// Postgres takes a statement's snapshot after the lock is there. So the statements see
// what the conversation's previous writer committed. The transaction is begun and
// committed in so many words, because a proxy may send on the statements of a pipeline
// one by one.
//
// AppendInTurn returns pgx.ErrNoRows where the lock or the append has no row. The
// caller then asks what is missing.
func AppendInTurn(ctx context.Context, h Handle, arg AppendMessageParams, then ...Statement) (n Node, err error) {
	conn, leave, err := connOf(ctx, h)
	if err != nil {
		return n, err
	}
	if conn != nil {
		defer leave()
		h = conn
	}
	var b pgx.Batch
	_, joins := h.(pgx.Tx)
	if !joins {
		b.Queue("begin")
	}
	lock := LockConversationParams{ID: arg.ConversationID, TenantID: arg.TenantID, Reader: arg.Reader}
	first := StatementOf(func(q *Queries) { _, _ = q.LockConversation(ctx, lock) })
	insert := StatementOf(func(q *Queries) { _, _ = q.AppendMessage(ctx, arg) })
	for _, s := range append([]Statement{first, insert}, then...) {
		b.Queue(s.SQL, s.Args...)
	}
	if !joins {
		b.Queue("commit")
		defer func() {
			if c, ok := h.(interface{ Conn() *pgx.Conn }); ok && err != nil && c.Conn().PgConn().TxStatus() != 'I' {
				_, _ = h.Exec(context.WithoutCancel(ctx), "rollback") // else the pool gives the connection up
			}
		}()
	}
	results := h.SendBatch(ctx, &b)
	if !joins {
		_, err = results.Exec()
	}
	if err == nil {
		_, err = results.Exec()
	}
	if err == nil {
		rows, _ := results.Query() // whose error the rows have, too
		n, err = pgx.CollectOneRow(rows, pgx.RowToStructByPos[Node])
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return n, err
}

// SendAll sends statements in one round trip, and has read read the result of each, in
// their order. The first error ends it.
func SendAll(ctx context.Context, h Handle, statements []Statement, read func(i int, results pgx.BatchResults) error) (err error) {
	if len(statements) == 0 {
		return nil
	}
	var b pgx.Batch
	for _, s := range statements {
		b.Queue(s.SQL, s.Args...)
	}
	results := h.SendBatch(ctx, &b)
	for i := range statements {
		if err = read(i, results); err != nil {
			break
		}
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return err
}

// A Query is a method of [Queries] that reads rows.
type Query[A, R any] func(*Queries, context.Context, A) ([]R, error)

// Each sends a query with each of several arguments in one round trip, and calls f with
// each row and the index of its argument. An error of f ends it.
func Each[A, R any](ctx context.Context, h Handle, query Query[A, R], args []A, f func(i int, row R) error) error {
	statements := statementsOf(args, func(q *Queries, arg A) { _, _ = query(q, ctx, arg) })
	return SendAll(ctx, h, statements, func(i int, results pgx.BatchResults) error {
		rows, _ := results.Query() // whose error the rows have, too
		defer rows.Close()
		for rows.Next() {
			row, err := pgx.RowToStructByPos[R](rows)
			if err == nil {
				err = f(i, row)
			}
			if err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// All is Each for callers that keep the rows.
func All[A, R any](ctx context.Context, h Handle, query Query[A, R], args []A) (all []R, err error) {
	err = Each(ctx, h, query, args, func(_ int, row R) error { all = append(all, row); return nil })
	return all, err
}

// ExecAll sends a command with each of several arguments in one round trip, and returns
// how many rows each changed. Outside a transaction it is one commit.
func ExecAll[A any](ctx context.Context, h Handle, args []A, call func(*Queries, A)) (rows []int64, err error) {
	err = SendAll(ctx, h, statementsOf(args, call), func(_ int, results pgx.BatchResults) error {
		tag, err := results.Exec()
		rows = append(rows, tag.RowsAffected())
		return err
	})
	return rows, err
}

func statementsOf[A any](args []A, call func(*Queries, A)) []Statement {
	statements := make([]Statement, len(args))
	for i, arg := range args {
		statements[i] = StatementOf(func(q *Queries) { call(q, arg) })
	}
	return statements
}

// Stream sends a query and gives its rows one by one, so that memory doesn't grow with
// them. The first error ends the sequence.
func Stream[A, R any](ctx context.Context, h Handle, query Query[A, R], arg A) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		var none R
		s := StatementOf(func(q *Queries) { _, _ = query(q, ctx, arg) })
		rows, err := h.Query(ctx, s.SQL, s.Args...)
		if err != nil {
			yield(none, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			row, err := pgx.RowToStructByPos[R](rows)
			if !yield(row, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(none, err)
		}
	}
}
