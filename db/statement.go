package db

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
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
// AppendInTurn returns pgx.ErrNoRows where the lock or the append has no row. The
// caller then asks what is missing.
func AppendInTurn(ctx context.Context, h Handle, arg AppendMessageParams, then ...Statement) (n Node, err error) {
	insert := StatementOf(func(q *Queries) { _, _ = q.AppendMessage(ctx, arg) })
	lock := LockConversationParams{ID: arg.ConversationID, TenantID: arg.TenantID}
	err = inTurn(ctx, h, lock, append([]Statement{insert}, then...), func(results pgx.BatchResults) error {
		rows, _ := results.Query() // whose error the rows have, too
		n, err = pgx.CollectOneRow(rows, pgx.RowToStructByPos[Node])
		return err
	})
	return n, err
}

// BeginReplyInTurn sends LockConversation and BeginReply in one pipeline, as
// AppendInTurn does. It returns the number of rows of BeginReply.
func BeginReplyInTurn(ctx context.Context, h Handle, arg BeginReplyParams) (rows int64, err error) {
	begin := StatementOf(func(q *Queries) { _, _ = q.BeginReply(ctx, arg) })
	lock := LockConversationParams{ID: arg.ConversationID, TenantID: arg.TenantID}
	err = inTurn(ctx, h, lock, []Statement{begin}, func(results pgx.BatchResults) error {
		tag, err := results.Exec()
		rows = tag.RowsAffected()
		return err
	})
	return rows, err
}

// inTurn sends LockConversation and then statements in one pipeline, in a
// transaction of their own unless h is one. read reads the results from the first
// statement on. Postgres takes a statement's snapshot after the lock is there. So
// the statements see what the conversation's previous writer committed. The
// transaction is begun and committed in so many words, because a proxy may send on
// the statements of a pipeline one by one.
func inTurn(ctx context.Context, h Handle, lock LockConversationParams, statements []Statement, read func(pgx.BatchResults) error) (err error) {
	conn, leave, err := connOf(ctx, h)
	if err != nil {
		return err
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
	first := StatementOf(func(q *Queries) { _, _ = q.LockConversation(ctx, lock) })
	for _, s := range append([]Statement{first}, statements...) {
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
		err = read(results)
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return err
}

// MovePlaces sends MovePlace for each of many places, in one round trip and one
// commit, and reports which of them moved.
func MovePlaces(ctx context.Context, h Handle, all []MovePlaceParams) (moved []bool, err error) {
	var b pgx.Batch
	for _, arg := range all {
		move := StatementOf(func(q *Queries) { _, _ = q.MovePlace(ctx, arg) })
		b.Queue(move.SQL, move.Args...)
	}
	results := h.SendBatch(ctx, &b)
	for range all {
		tag, failed := results.Exec()
		if failed != nil {
			err = failed
			break
		}
		moved = append(moved, tag.RowsAffected() > 0)
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return moved, err
}

// ListAllGrown sends ListGrown for each of many conversations, in one round trip.
func ListAllGrown(ctx context.Context, h Handle, all []ListGrownParams) (rows [][]ListGrownRow, err error) {
	var b pgx.Batch
	for _, arg := range all {
		list := StatementOf(func(q *Queries) { _, _ = q.ListGrown(ctx, arg) })
		b.Queue(list.SQL, list.Args...)
	}
	results := h.SendBatch(ctx, &b)
	rows = make([][]ListGrownRow, len(all))
	for i := range all {
		found, _ := results.Query() // whose error the rows have, too
		if rows[i], err = pgx.CollectRows(found, pgx.RowToStructByPos[ListGrownRow]); err != nil {
			break
		}
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return rows, err
}

// A DescribedHit is a row of DescribeHits. sqlc's own type nests the node in it.
type DescribedHit struct {
	Node
	LeafID       pgtype.UUID
	Title        string
	SiblingCount int32
}

// DescribeAll sends DescribeHits for several conversations in one round trip, at the
// end of a search.
func DescribeAll(ctx context.Context, h Handle, args []DescribeHitsParams) ([]DescribedHit, error) {
	return queryAll[DescribedHit](ctx, h, args, func(q *Queries, arg DescribeHitsParams) { _, _ = q.DescribeHits(ctx, arg) })
}

// queryAll sends a query with several arguments in one round trip.
func queryAll[R, A any](ctx context.Context, h Handle, args []A, call func(*Queries, A)) (all []R, err error) {
	var b pgx.Batch
	for _, arg := range args {
		s := StatementOf(func(q *Queries) { call(q, arg) })
		b.Queue(s.SQL, s.Args...)
	}
	results := h.SendBatch(ctx, &b)
	for range args {
		rows, _ := results.Query() // whose error the rows have, too
		if all, err = pgx.AppendRows(all, rows, pgx.RowToStructByPos[R]); err != nil {
			break
		}
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return all, err
}

// StreamTree is [Queries.StreamTree] row by row, so that memory doesn't grow with
// the tree. The first error ends the sequence.
func StreamTree(ctx context.Context, h Handle, arg StreamTreeParams) iter.Seq2[StreamTreeRow, error] {
	return stream[StreamTreeRow](ctx, h, StatementOf(func(q *Queries) { _, _ = q.StreamTree(ctx, arg) }))
}

// StreamNodes is [Queries.StreamNodes] row by row.
func StreamNodes(ctx context.Context, h Handle, conversationID pgtype.UUID) iter.Seq2[Node, error] {
	return stream[Node](ctx, h, StatementOf(func(q *Queries) { _, _ = q.StreamNodes(ctx, conversationID) }))
}

// StreamBranch is [Queries.StreamBranch] row by row.
func StreamBranch(ctx context.Context, h Handle, arg StreamBranchParams) iter.Seq2[StreamBranchRow, error] {
	return stream[StreamBranchRow](ctx, h, StatementOf(func(q *Queries) { _, _ = q.StreamBranch(ctx, arg) }))
}

// StreamTitled is [Queries.ListTitled] row by row, as few of many may be wanted.
func StreamTitled(ctx context.Context, h Handle, arg ListTitledParams) iter.Seq2[Conversation, error] {
	return stream[Conversation](ctx, h, StatementOf(func(q *Queries) { _, _ = q.ListTitled(ctx, arg) }))
}

// StreamUp is [Queries.WalkUp] row by row, because a page of messages can be
// large.
func StreamUp(ctx context.Context, h Handle, arg WalkUpParams) iter.Seq2[WalkUpRow, error] {
	return stream[WalkUpRow](ctx, h, StatementOf(func(q *Queries) { _, _ = q.WalkUp(ctx, arg) }))
}

// StreamTexts is [Queries.ListTexts] row by row.
func StreamTexts(ctx context.Context, h Handle, arg ListTextsParams) iter.Seq2[ListTextsRow, error] {
	return stream[ListTextsRow](ctx, h, StatementOf(func(q *Queries) { _, _ = q.ListTexts(ctx, arg) }))
}

// StreamEmbeddings is [Queries.ListEmbeddings] row by row.
func StreamEmbeddings(ctx context.Context, h Handle, arg ListEmbeddingsParams) iter.Seq2[ListEmbeddingsRow, error] {
	return stream[ListEmbeddingsRow](ctx, h, StatementOf(func(q *Queries) { _, _ = q.ListEmbeddings(ctx, arg) }))
}

// StreamTenantEmbeddings is [Queries.ListTenantEmbeddings] row by row.
func StreamTenantEmbeddings(ctx context.Context, h Handle, arg ListTenantEmbeddingsParams) iter.Seq2[ListTenantEmbeddingsRow, error] {
	return stream[ListTenantEmbeddingsRow](ctx, h, StatementOf(func(q *Queries) { _, _ = q.ListTenantEmbeddings(ctx, arg) }))
}

func stream[R any](ctx context.Context, h Handle, s Statement) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		var none R
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

// InsertChunks inserts chunks of the index of words in one round trip.
func InsertChunks(ctx context.Context, h Handle, args []InsertChunkParams) error {
	if len(args) == 0 {
		return nil
	}
	var b pgx.Batch
	for _, arg := range args {
		s := StatementOf(func(q *Queries) { _ = q.InsertChunk(ctx, arg) })
		b.Queue(s.SQL, s.Args...)
	}
	return h.SendBatch(ctx, &b).Close()
}

// PlaceChunks puts chunks into a segment, in the order of their ids, in one round
// trip. It returns those that it could place, in their places.
func PlaceChunks(ctx context.Context, h Handle, segment pgtype.UUID, keys []ListLooseKeysRow) (placed []SearchChunk, err error) {
	slices.SortFunc(keys, func(a, b ListLooseKeysRow) int {
		return cmp.Or(bytes.Compare(a.ConversationID.Bytes[:], b.ConversationID.Bytes[:]), cmp.Compare(a.Number, b.Number))
	})
	args := make([]PlaceChunkParams, len(keys))
	for i, key := range keys {
		args[i] = PlaceChunkParams{Segment: segment, Place: pgtype.Int2{Int16: int16(i), Valid: true}, ConversationID: key.ConversationID, Number: key.Number}
	}
	return queryAll[SearchChunk](ctx, h, args, func(q *Queries, arg PlaceChunkParams) { _, _ = q.PlaceChunk(ctx, arg) })
}

// ListChunksOfAll sends ListConversationChunks for several conversations in one
// round trip.
func ListChunksOfAll(ctx context.Context, h Handle, args []ListConversationChunksParams) ([]SearchChunk, error) {
	return queryAll[SearchChunk](ctx, h, args, func(q *Queries, arg ListConversationChunksParams) { _, _ = q.ListConversationChunks(ctx, arg) })
}

// ListPlacedChunks sends ListPlacedChunks for several segments in one round trip.
func ListPlacedChunks(ctx context.Context, h Handle, args []ListPlacedChunksParams) ([]SearchChunk, error) {
	return queryAll[SearchChunk](ctx, h, args, func(q *Queries, arg ListPlacedChunksParams) { _, _ = q.ListPlacedChunks(ctx, arg) })
}

// EachText sends ListTexts for several conversations in one round trip, and calls f
// with each row.
func EachText(ctx context.Context, h Handle, args []ListTextsParams, f func(pgtype.UUID, ListTextsRow) error) (err error) {
	if len(args) == 0 {
		return nil
	}
	var b pgx.Batch
	for _, arg := range args {
		s := StatementOf(func(q *Queries) { _, _ = q.ListTexts(ctx, arg) })
		b.Queue(s.SQL, s.Args...)
	}
	results := h.SendBatch(ctx, &b)
	for _, arg := range args {
		rows, _ := results.Query() // whose error the rows have, too
		for err == nil && rows.Next() {
			var row ListTextsRow
			if row, err = pgx.RowToStructByPos[ListTextsRow](rows); err == nil {
				err = f(arg.ConversationID, row)
			}
		}
		rows.Close()
		if err == nil {
			err = rows.Err()
		}
		if err != nil {
			break
		}
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return err
}
