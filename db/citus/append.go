package citus

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
)

// Lock is LockTurn and LockConversation in one round trip, for a transaction
// on a distributed database.
func Lock(ctx context.Context, tx db.Handle, arg db.LockConversationParams) (c db.Conversation, err error) {
	err = db.SendAll(ctx, tx, lock(ctx, arg), func(i int, results pgx.BatchResults) error { return locked(i, results, &c) })
	return c, err
}

func lock(ctx context.Context, arg db.LockConversationParams) []db.Statement {
	return []db.Statement{
		db.StatementOf(func(q *db.Queries) { _ = q.LockTurn(ctx, db.LockTurnParams{TenantID: arg.TenantID, ID: arg.ID}) }),
		db.StatementOf(func(q *db.Queries) { _, _ = q.LockConversation(ctx, arg) }),
	}
}

// locked reads the result of a statement of lock.
func locked(i int, results pgx.BatchResults, c *db.Conversation) (err error) {
	if i == 0 {
		_, err = results.Exec()
		return err
	}
	rows, _ := results.Query() // whose error the rows have, too
	*c, err = pgx.CollectOneRow(rows, pgx.RowToStructByPos[db.Conversation])
	return err
}

// LockParentState locks a conversation as [Lock] does, and then reads
// the rows of a message's parent and of the message itself, as far as they are
// there, and the last index among the parent's children: one round trip. It serves
// a transaction on a distributed database, where AppendMessage would be planned for
// every shard. Each of these statements reads one table by its key, and is planned
// by its node alone.
func LockParentState(ctx context.Context, tx pgx.Tx, arg db.AppendMessageParams) (c db.Conversation, rows []db.GetParentStatesRow, last int32, err error) {
	states := db.GetParentStatesParams{ConversationID: arg.ConversationID}
	states.Ids = append(states.Ids, arg.ID)
	count := func(q *db.Queries) { _, _ = q.GetLastRoot(ctx, arg.ConversationID) }
	if arg.ParentID.Valid {
		states.Ids = append(states.Ids, arg.ParentID)
		count = func(q *db.Queries) {
			_, _ = q.GetLastChild(ctx, db.GetLastChildParams{ConversationID: arg.ConversationID, ParentID: arg.ParentID})
		}
	}
	statements := append(lock(ctx, db.LockConversationParams{ID: arg.ConversationID, TenantID: arg.TenantID, Reader: arg.Reader}),
		db.StatementOf(func(q *db.Queries) { _, _ = q.GetParentStates(ctx, states) }), db.StatementOf(count))
	err = db.SendAll(ctx, tx, statements, func(i int, results pgx.BatchResults) (err error) {
		switch i {
		case 2:
			found, _ := results.Query() // whose error the rows have, too
			rows, err = pgx.CollectRows(found, pgx.RowToStructByPos[db.GetParentStatesRow])
			return err
		case 3:
			return results.QueryRow().Scan(&last)
		}
		return locked(i, results, &c)
	})
	return c, rows, last, err
}

// Insert inserts a node, touches its conversation and notes the change, in
// one round trip.
func Insert(ctx context.Context, tx pgx.Tx, node db.InsertNodeParams, touch db.TouchConversationParams, change db.InsertChangeParams) error {
	statements := []db.Statement{
		db.StatementOf(func(q *db.Queries) { _ = q.InsertNode(ctx, node) }),
		db.StatementOf(func(q *db.Queries) { _ = q.TouchConversation(ctx, touch) }),
		db.StatementOf(func(q *db.Queries) { _ = q.InsertChange(ctx, change) }),
	}
	return db.SendAll(ctx, tx, statements, func(_ int, results pgx.BatchResults) error { _, err := results.Exec(); return err })
}
