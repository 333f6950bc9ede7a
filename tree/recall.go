package tree

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
)

// A Version tells two rows of one message apart: a message that was pruned and
// stored again under its old id has another Version. A message can't be pruned
// without the messages below it. So while a head keeps its Version, its whole
// path has stayed the same. The prune of an earlier sibling changes the Version
// too.
type Version uint32

// A BranchState lets a reader that remembers a branch see whether the branch
// still stands.
type BranchState struct {
	HeadID    uuid.UUID // the active one, where that was asked for
	Version   Version   // of the head
	PrefixID  uuid.UUID // last of the leading system and developer messages; uuid.Nil for none
	Messages  int       // of the whole conversation
	UpdatedAt time.Time // when something was last said or pruned in it
	Folds     []Fold    // where the conversation's summaries stand, newest first
}

// A Fold is where a summary stands.
type Fold struct {
	SummaryID uuid.UUID
	AnchorID  uuid.UUID
	CutoffID  uuid.UUID // last message that the summary replaces
}

// A MessageText is a message as an index of its words needs it.
type MessageText struct {
	ID        uuid.UUID
	ParentID  uuid.UUID
	Version   Version
	Role      Role
	Depth     int
	Tokens    int
	CreatedAt time.Time
	Body      json.RawMessage
}

// BranchState reads the state of the branch that ends in headID, in two short
// queries. A headID of uuid.Nil is the active head. The cost grows with the
// number of the conversation's summaries, and not with the branch.
func (s *Index) BranchState(ctx context.Context, conversationID, headID uuid.UUID) (_ BranchState, err error) {
	defer db.Wrap(&err, "tree.Index.BranchState(%s, head %s)", conversationID, headID)
	row, err := s.q.GetRecallBranch(ctx, db.GetRecallBranchParams{ConversationID: toUUID(conversationID), HeadID: toUUID(headID), TenantID: s.tenant, Reader: s.reader})
	if isNoRows(err) {
		return BranchState{}, s.store().noBranch(ctx, conversationID, headID, Paging{})
	}
	if err != nil {
		return BranchState{}, err
	}
	state := BranchState{HeadID: uuid.UUID(row.HeadID.Bytes), Version: Version(row.Version), PrefixID: uuid.UUID(row.PrefixID.Bytes), Messages: int(row.MessageCount), UpdatedAt: row.UpdatedAt.UTC()}
	folds, err := s.q.ListSummaries(ctx, db.ListSummariesParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader})
	for _, f := range folds {
		state.Folds = append(state.Folds, Fold{uuid.UUID(f.ID.Bytes), uuid.UUID(f.ParentID.Bytes), uuid.UUID(f.LastSummarizedID.Bytes)})
	}
	return state, err
}

// Ancestors calls fn with a message and then with those above it, up to limit of
// them, towards the root. An absent message gives none. An error of fn ends the
// walk.
func (s *Index) Ancestors(ctx context.Context, conversationID, id uuid.UUID, limit int, fn func(MessageText) error) (err error) {
	defer db.Wrap(&err, "tree.Index.Ancestors(%s, %s)", conversationID, id)
	params := db.WalkUpParams{ConversationID: toUUID(conversationID), ID: toUUID(id), TenantID: s.tenant, Reader: s.reader, RowLimit: int32(limit)}
	for row, err := range db.Stream(ctx, s.h, (*db.Queries).WalkUp, params) {
		if err == nil {
			err = fn(fromText(row))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Texts calls fn with messages in the order of their ids, and leaves out absent
// ones. An error of fn ends it.
func (s *Index) Texts(ctx context.Context, conversationID uuid.UUID, ids []uuid.UUID, fn func(MessageText) error) (err error) {
	defer db.Wrap(&err, "tree.Index.Texts(%s, %d ids)", conversationID, len(ids))
	params := db.ListTextsParams{ConversationID: toUUID(conversationID), Ids: toUUIDs(ids), TenantID: s.tenant, Reader: s.reader}
	for row, err := range db.Stream(ctx, s.h, (*db.Queries).ListTexts, params) {
		if err == nil {
			err = fn(fromText(row))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TextsAt calls fn with messages of several conversations, in one round trip. The
// messages of a conversation come together; absent ones are left out.
func (s *Index) TextsAt(ctx context.Context, places []Place, fn func(uuid.UUID, MessageText) error) (err error) {
	defer db.Wrap(&err, "tree.Index.TextsAt(%d)", len(places))
	var params []db.ListTextsParams
	for conversation, ids := range byConversation(places) {
		params = append(params, db.ListTextsParams{ConversationID: toUUID(conversation), Ids: ids, TenantID: s.tenant, Reader: s.reader})
	}
	return db.Each(ctx, s.h, (*db.Queries).ListTexts, params, func(i int, row db.ListTextsRow) error {
		return fn(uuid.UUID(params[i].ConversationID.Bytes), fromText(row))
	})
}

// Reading runs f with a Store whose reads see the database at one moment, in a
// transaction of its own, or in the caller's.
func (s *Index) Reading(ctx context.Context, f func(*Store) error) (err error) {
	starts, ok := s.h.(interface {
		BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
	})
	if !ok {
		return f(s.store())
	}
	tx, err := starts.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		db.Wrap(&err, "tree.Index.Reading")
		return err
	}
	err = f(s.store().over(tx))
	if rollback := tx.Rollback(context.WithoutCancel(ctx)); err == nil { // it only reads
		err = rollback
		db.Wrap(&err, "tree.Index.Reading")
	}
	return err
}

// fromText is the one converter of rows with texts.
func fromText(row db.WalkUpRow) MessageText {
	return MessageText{
		ID: uuid.UUID(row.ID.Bytes), ParentID: uuid.UUID(row.ParentID.Bytes), Version: Version(row.Version),
		Role: Role(row.Role), Depth: int(row.Depth), Tokens: int(row.Tokens), CreatedAt: row.CreatedAt.UTC(), Body: row.Body,
	}
}

// Versions calls fn with the version of every message of a conversation, the newest
// first. It reads the whole conversation without its bodies: about
// 100 ms for 100,000 messages.
func (s *Index) Versions(ctx context.Context, conversationID uuid.UUID, fn func(uuid.UUID, Version)) (err error) {
	defer db.Wrap(&err, "tree.Index.Versions(%s)", conversationID)
	rows, err := s.q.ListVersions(ctx, db.ListVersionsParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader})
	for _, row := range rows {
		fn(uuid.UUID(row.ID.Bytes), Version(row.Version))
	}
	return err
}
