package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Distributed reports whether the database has the extension Citus, so that the
// tables of the tree may be distributed over nodes. A connection is asked once.
//
// Citus plans a join for each call of it. So [Open] then leaves it to
// Postgres when to plan, and package tree sends statements that Citus itself needn't
// plan, where there is a choice.
func Distributed(ctx context.Context, h DBTX) (bool, error) {
	conn, leave, err := connOf(ctx, h)
	if err != nil {
		return false, err
	}
	if conn != nil {
		defer leave()
		h = conn
	}
	var known map[string]any
	if c, ok := h.(interface{ Conn() *pgx.Conn }); ok {
		known = c.Conn().PgConn().CustomData()
		if there, asked := known[distributedKey].(bool); asked {
			return there, nil
		}
	}
	var there bool
	err = h.QueryRow(ctx, "select "+hasCitus).Scan(&there)
	if err == nil && known != nil {
		known[distributedKey] = there
	}
	return there, err
}

const (
	distributedKey = "coppice.distributed"

	hasCitus = "to_regclass('pg_catalog.pg_dist_partition') is not null"
)

// LockInTurn is LockTurn and LockConversation in one round trip, for a transaction
// on a distributed database.
func LockInTurn(ctx context.Context, tx Handle, arg LockConversationParams) (c Conversation, err error) {
	var b pgx.Batch
	queueLock(ctx, &b, arg)
	results := tx.SendBatch(ctx, &b)
	c, err = lockedConversation(results)
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return c, err
}

func queueLock(ctx context.Context, b *pgx.Batch, arg LockConversationParams) {
	turn := StatementOf(func(q *Queries) { _ = q.LockTurn(ctx, LockTurnParams{TenantID: arg.TenantID, ID: arg.ID}) })
	lock := StatementOf(func(q *Queries) { _, _ = q.LockConversation(ctx, arg) })
	b.Queue(turn.SQL, turn.Args...)
	b.Queue(lock.SQL, lock.Args...)
}

func lockedConversation(results pgx.BatchResults) (Conversation, error) {
	if _, err := results.Exec(); err != nil { // the turn
		return Conversation{}, err
	}
	found, _ := results.Query() // whose error the rows have, too
	return pgx.CollectOneRow(found, pgx.RowToStructByPos[Conversation])
}

// LockParentState locks a conversation as [LockInTurn] does, and then reads
// the rows of a message's parent and of the message itself, as far as they are
// there, and the last index among the parent's children: one round trip. It serves
// a transaction on a distributed database, where AppendMessage would be planned for
// every shard. Each of these statements reads one table by its key, and is planned
// by its node alone.
func LockParentState(ctx context.Context, tx pgx.Tx, arg AppendMessageParams) (c Conversation, rows []GetParentStatesRow, last int32, err error) {
	var b pgx.Batch
	queueLock(ctx, &b, LockConversationParams{ID: arg.ConversationID, TenantID: arg.TenantID})
	states := GetParentStatesParams{ConversationID: arg.ConversationID}
	states.Ids = append(states.Ids, arg.ID)
	count := StatementOf(func(q *Queries) { _, _ = q.GetLastRoot(ctx, arg.ConversationID) })
	if arg.ParentID.Valid {
		states.Ids = append(states.Ids, arg.ParentID)
		count = StatementOf(func(q *Queries) {
			_, _ = q.GetLastChild(ctx, GetLastChildParams{ConversationID: arg.ConversationID, ParentID: arg.ParentID})
		})
	}
	read := StatementOf(func(q *Queries) { _, _ = q.GetParentStates(ctx, states) })
	for _, s := range []Statement{read, count} {
		b.Queue(s.SQL, s.Args...)
	}
	results := tx.SendBatch(ctx, &b)
	if c, err = lockedConversation(results); err == nil {
		found, _ := results.Query() // whose error the rows have, too
		rows, err = pgx.CollectRows(found, pgx.RowToStructByPos[GetParentStatesRow])
	}
	if err == nil {
		err = results.QueryRow().Scan(&last)
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return c, rows, last, err
}

// InsertInTurn inserts a node, touches its conversation and notes the change, in
// one round trip.
func InsertInTurn(ctx context.Context, tx pgx.Tx, node InsertNodeParams, touch TouchConversationParams, change InsertChangeParams) error {
	var b pgx.Batch
	for _, s := range []Statement{
		StatementOf(func(q *Queries) { _ = q.InsertNode(ctx, node) }),
		StatementOf(func(q *Queries) { _ = q.TouchConversation(ctx, touch) }),
		StatementOf(func(q *Queries) { _ = q.InsertChange(ctx, change) }),
	} {
		b.Queue(s.SQL, s.Args...)
	}
	return tx.SendBatch(ctx, &b).Close()
}
