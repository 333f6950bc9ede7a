package citus

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
)

// Lock is LockTurn and LockConversation in one round trip, for a transaction
// on a distributed database.
func Lock(ctx context.Context, tx db.Handle, arg db.LockConversationParams) (c db.Conversation, err error) {
	var b pgx.Batch
	queueLock(ctx, &b, arg)
	results := tx.SendBatch(ctx, &b)
	c, err = lockedConversation(results)
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return c, err
}

func queueLock(ctx context.Context, b *pgx.Batch, arg db.LockConversationParams) {
	turn := db.StatementOf(func(q *db.Queries) { _ = q.LockTurn(ctx, db.LockTurnParams{TenantID: arg.TenantID, ID: arg.ID}) })
	lock := db.StatementOf(func(q *db.Queries) { _, _ = q.LockConversation(ctx, arg) })
	b.Queue(turn.SQL, turn.Args...)
	b.Queue(lock.SQL, lock.Args...)
}

func lockedConversation(results pgx.BatchResults) (db.Conversation, error) {
	if _, err := results.Exec(); err != nil { // the turn
		return db.Conversation{}, err
	}
	found, _ := results.Query() // whose error the rows have, too
	return pgx.CollectOneRow(found, pgx.RowToStructByPos[db.Conversation])
}

// LockParentState locks a conversation as [Lock] does, and then reads
// the rows of a message's parent and of the message itself, as far as they are
// there, and the last index among the parent's children: one round trip. It serves
// a transaction on a distributed database, where AppendMessage would be planned for
// every shard. Each of these statements reads one table by its key, and is planned
// by its node alone.
func LockParentState(ctx context.Context, tx pgx.Tx, arg db.AppendMessageParams) (c db.Conversation, rows []db.GetParentStatesRow, last int32, err error) {
	var b pgx.Batch
	queueLock(ctx, &b, db.LockConversationParams{ID: arg.ConversationID, TenantID: arg.TenantID})
	states := db.GetParentStatesParams{ConversationID: arg.ConversationID}
	states.Ids = append(states.Ids, arg.ID)
	count := db.StatementOf(func(q *db.Queries) { _, _ = q.GetLastRoot(ctx, arg.ConversationID) })
	if arg.ParentID.Valid {
		states.Ids = append(states.Ids, arg.ParentID)
		count = db.StatementOf(func(q *db.Queries) {
			_, _ = q.GetLastChild(ctx, db.GetLastChildParams{ConversationID: arg.ConversationID, ParentID: arg.ParentID})
		})
	}
	read := db.StatementOf(func(q *db.Queries) { _, _ = q.GetParentStates(ctx, states) })
	for _, s := range []db.Statement{read, count} {
		b.Queue(s.SQL, s.Args...)
	}
	results := tx.SendBatch(ctx, &b)
	if c, err = lockedConversation(results); err == nil {
		found, _ := results.Query() // whose error the rows have, too
		rows, err = pgx.CollectRows(found, pgx.RowToStructByPos[db.GetParentStatesRow])
	}
	if err == nil {
		err = results.QueryRow().Scan(&last)
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return c, rows, last, err
}

// Insert inserts a node, touches its conversation and notes the change, in
// one round trip.
func Insert(ctx context.Context, tx pgx.Tx, node db.InsertNodeParams, touch db.TouchConversationParams, change db.InsertChangeParams) error {
	var b pgx.Batch
	for _, s := range []db.Statement{
		db.StatementOf(func(q *db.Queries) { _ = q.InsertNode(ctx, node) }),
		db.StatementOf(func(q *db.Queries) { _ = q.TouchConversation(ctx, touch) }),
		db.StatementOf(func(q *db.Queries) { _ = q.InsertChange(ctx, change) }),
	} {
		b.Queue(s.SQL, s.Args...)
	}
	return tx.SendBatch(ctx, &b).Close()
}
