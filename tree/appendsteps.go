package tree

import (
	"context"
	"crypto/sha256"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/citus"
)

// An engine remembers whether the database is distributed. All tenants' stores
// share it.
type engine struct{ distributed atomic.Pointer[bool] }

func (e *engine) isDistributed(ctx context.Context, h db.Handle) (bool, error) {
	if known := e.distributed.Load(); known != nil {
		return *known, nil
	}
	is, err := db.Distributed(ctx, h)
	if err == nil {
		e.distributed.Store(&is)
	}
	return is, err
}

// whereDistributed does what only a distributed database needs.
func (s *Store) whereDistributed(ctx context.Context, f func() error) error {
	is, err := s.engine.isDistributed(ctx, s.h)
	if err != nil || !is {
		return err
	}
	return f()
}

// appendInSteps does what AppendMessage does, in statements that a distributed
// database needn't plan: the parent is read and the message placed here, and not
// in the statement that inserts it. It returns pgx.ErrNoRows where AppendMessage
// has no row.
func (s *Store) appendInSteps(ctx context.Context, h db.Handle, arg db.AppendMessageParams, then ...db.Statement) (node db.Node, err error) {
	err = pgx.BeginFunc(ctx, h, func(tx pgx.Tx) error {
		c, rows, last, err := citus.LockParentState(ctx, tx, arg)
		if err != nil {
			return err
		}
		p, fits := parentStateFor(arg, rows)
		if !fits || arg.MostMessages > 0 && c.MessageCount >= arg.MostMessages {
			return pgx.ErrNoRows
		}
		own := p.child(uuid.UUID(arg.ID.Bytes), Role(arg.Role), int(arg.Tokens))
		insert := db.InsertNodeParams{
			ConversationID: arg.ConversationID, ID: arg.ID, ParentID: arg.ParentID,
			Kind: string(KindMessage), Role: arg.Role, SiblingIndex: pgtype.Int4{Int32: last + 1, Valid: true},
			Depth: int32(own.depth), Tokens: arg.Tokens, PathTokens: own.pathTokens, PrefixID: toUUID(own.prefixID),
			Pinned: arg.Pinned, CreatedAt: arg.CreatedAt, Body: arg.Body, Metadata: arg.Metadata,
			PathHash: arg.RootHash, Reasoning: arg.Reasoning,
		}
		if arg.ParentID.Valid {
			insert.PathHash = nil
			if p.hash != nil {
				hash := p.hash.ChildOf([sha256.Size]byte(arg.Form))
				insert.PathHash = hash[:]
			}
		}
		touch := db.TouchConversationParams{ID: arg.ConversationID, UpdatedAt: arg.CreatedAt, AddedMessages: 1, AddedChanges: 1}
		change := db.InsertChangeParams{
			ConversationID: arg.ConversationID, Sequence: c.ChangeCount + 1, TenantID: arg.TenantID, Kind: string(MessagesAppended),
			MessageID: arg.ID, ParentID: arg.ParentID, HeadID: c.HeadID, Messages: 1, At: now(),
		}
		if arg.MoveHead && (!arg.CompareHead || c.HeadID == arg.ExpectedHead) {
			touch.HeadID, change.HeadID = arg.ID, arg.ID
		}
		node = db.Node(insert)
		if err := citus.Insert(ctx, tx, insert, touch, change); err != nil {
			return err
		}
		for _, s := range then {
			if _, err := tx.Exec(ctx, s.SQL, s.Args...); err != nil {
				return err
			}
		}
		return nil
	})
	return node, err
}

// parentStateFor gives the parent state under which a message is to be stored. It doesn't fit
// where its id is taken, or its parent is no message.
func parentStateFor(arg db.AppendMessageParams, rows []db.GetParentStatesRow) (p parentState, fits bool) {
	p, fits = root, !arg.ParentID.Valid
	for _, row := range rows {
		switch {
		case row.ID == arg.ID:
			return p, false
		case row.Kind == string(KindMessage):
			p, fits = parentStateOf(db.Node{ID: row.ID, Depth: row.Depth, PathTokens: row.PathTokens, PrefixID: row.PrefixID, PathHash: row.PathHash}), true
		}
	}
	return p, fits
}
