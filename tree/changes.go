package tree

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

// A Change says that a conversation changed, and where: ids, and no text. Each
// change is stored in the transaction that makes it, and kept for KeepChanges.
type Change struct {
	ConversationID uuid.UUID
	TenantID       string
	Sequence       int64 // counts the changes of a conversation, without gaps, from a number that no deleted one of its id had
	Kind           ChangeKind
	MessageID      uuid.UUID // message or summary that it is about, the last one of several; uuid.Nil for none
	ParentID       uuid.UUID // above it, or above the first one of several; uuid.Nil for none
	HeadID         uuid.UUID // active head after the change; uuid.Nil for none
	Messages       int       // how many messages were added or deleted
	At             time.Time // when the server that made the change noted it
}

// A ChangeKind says what changed. It is the name of an event.
type ChangeKind string

const (
	ConversationCreated  ChangeKind = "conversation.created" // by itself or as a fork
	ConversationImported ChangeKind = "conversation.imported"
	ConversationUpdated  ChangeKind = "conversation.updated" // title, metadata, settings or order
	ConversationDeleted  ChangeKind = "conversation.deleted"
	HeadMoved            ChangeKind = "head.moved"        // by itself, not by an append or a prune
	MessagesAppended     ChangeKind = "messages.appended" // one, or several as a path
	MessagePinned        ChangeKind = "message.pinned"    // or its pin was taken away
	MessageAnnotated     ChangeKind = "message.annotated" // rated, labelled or noted
	MessagesPruned       ChangeKind = "messages.pruned"   // one, with all below it
	SummaryCreated       ChangeKind = "summary.created"   // a compaction landed
	SummaryDeleted       ChangeKind = "summary.deleted"   // a compaction was undone
	ReplyRunning         ChangeKind = "reply.running"     // an answer takes longer than half a second
	ReplyEnded           ChangeKind = "reply.ended"       // with nothing to store; else the answer is appended
)

// KeepChanges is how long changes are kept.
const KeepChanges = time.Hour

// WithChangeHook calls changed with the tenant and the id of each conversation that
// the store changed, after the commit. changed must not wait. In a transaction of the
// caller's it isn't called, because only the caller knows of the commit.
func WithChangeHook(changed func(tenantID string, conversationID uuid.UUID)) Option {
	return func(s *Store) { s.changed = changed }
}

// note stores a change in the transaction that makes it, as its last statement.
func (s *Store) note(ctx context.Context, c Change) error {
	s.committing(c.ConversationID)
	return s.q.NoteChange(ctx, db.NoteChangeParams{
		ConversationID: toUUID(c.ConversationID), TenantID: s.tenant, Kind: string(c.Kind),
		MessageID: toUUID(c.MessageID), ParentID: toUUID(c.ParentID), Messages: int32(c.Messages), At: now(),
	})
}

// committing has the hook called for a conversation: after the commit of the
// transaction that the store is over, or at once where the statement was one.
func (s *Store) committing(conversationID uuid.UUID) {
	switch {
	case s.changed == nil:
	case s.uncommitted != nil:
		*s.uncommitted = append(*s.uncommitted, conversationID)
	case s.commits():
		s.changed(s.tenant, conversationID)
	}
}

// ChangeCount returns the sequence of a conversation's newest change.
func (s *Feed) ChangeCount(ctx context.Context, conversationID uuid.UUID) (_ int64, err error) {
	defer db.Wrap(&err, "tree.Feed.ChangeCount(%s)", conversationID)
	row, err := s.q.GetConversation(ctx, db.GetConversationParams{ID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader})
	return row.ChangeCount, orMissing(err, errConversationNotFound)
}

// Changes returns changes of a conversation after a sequence, oldest first. It
// doesn't check whose the conversation is, which may be deleted.
func (s *Feed) Changes(ctx context.Context, conversationID uuid.UUID, after int64, since time.Time, limit int) (_ []Change, err error) {
	defer db.Wrap(&err, "tree.Feed.Changes(%s, after %d)", conversationID, after)
	rows, err := s.q.ListChanges(ctx, db.ListChangesParams{ConversationID: toUUID(conversationID), After: after, Since: since, RowLimit: int32(limit)})
	return fromChanges(rows), err
}

// TenantChanges returns the tenant's changes since a time, oldest first. A change
// that is committed late may have an earlier time than one that was returned.
func (s *Feed) TenantChanges(ctx context.Context, since time.Time, limit int) (_ []Change, err error) {
	defer db.Wrap(&err, "tree.Feed.TenantChanges(since %s)", since)
	rows, err := s.q.ListTenantChanges(ctx, db.ListTenantChangesParams{TenantID: s.tenant, Since: since, RowLimit: int32(limit)})
	return fromChanges(rows), err
}

// Changed returns the newest sequences of conversations that changed since a
// time, of these tenants' and of these conversations. It is for no request.
func (s *Feed) Changed(ctx context.Context, since time.Time, tenants []string, conversations []uuid.UUID) (_ map[uuid.UUID]int64, err error) {
	defer db.Wrap(&err, "tree.Feed.Changed(since %s)", since)
	rows, err := s.q.ListChanged(ctx, db.ListChangedParams{Since: since, TenantIds: tenants, ConversationIds: toUUIDs(conversations)})
	out := make(map[uuid.UUID]int64, len(rows))
	for _, row := range rows {
		out[uuid.UUID(row.ConversationID.Bytes)] = row.Sequence
	}
	return out, err
}

// TenantChanged returns the newest sequences of the tenant's conversations that
// changed since a time.
func (s *Feed) TenantChanged(ctx context.Context, since time.Time) (_ map[uuid.UUID]int64, err error) {
	defer db.Wrap(&err, "tree.Feed.TenantChanged(since %s)", since)
	rows, err := s.q.ListTenantChanged(ctx, db.ListTenantChangedParams{TenantID: s.tenant, Since: since})
	out := make(map[uuid.UUID]int64, len(rows))
	for _, row := range rows {
		out[uuid.UUID(row.ConversationID.Bytes)] = row.Sequence
	}
	return out, err
}

// Forget deletes the changes of every tenant that are older than
// KeepChanges.
func (s *Feed) Forget(ctx context.Context) (err error) {
	defer db.Wrap(&err, "tree.Feed.Forget")
	return s.store().inTx(ctx, func(s *Store) error {
		return s.allowLongStatements(ctx, func() error { return s.q.ForgetChanges(ctx, now().Add(-KeepChanges)) })
	})
}

// fromChanges is the one converter of changes.
func fromChanges(rows []db.Change) []Change {
	out := make([]Change, len(rows))
	for i, row := range rows {
		out[i] = Change{
			ConversationID: uuid.UUID(row.ConversationID.Bytes), TenantID: row.TenantID, Sequence: row.Sequence, Kind: ChangeKind(row.Kind),
			MessageID: uuid.UUID(row.MessageID.Bytes), ParentID: uuid.UUID(row.ParentID.Bytes), HeadID: uuid.UUID(row.HeadID.Bytes),
			Messages: int(row.Messages), At: row.At.UTC(),
		}
	}
	return out
}
