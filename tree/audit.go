package tree

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/db"
)

// An AuditEvent says who did what. It has ids, and no text of messages.
type AuditEvent struct {
	ID             uuid.UUID `json:"id"`
	At             time.Time `json:"at"`
	Action         string    `json:"action"`
	ConversationID uuid.UUID `json:"conversation_id"` // uuid.Nil: it was done to none
	SubjectID      uuid.UUID `json:"subject_id"`      // what in the conversation, or which key; uuid.Nil: nothing
	Detail         string    `json:"detail"`          // more of it, for people; "" is nothing

	// Who did it. Without a key, a user and an address it was the program itself or a
	// command on the database.
	KeyID     uuid.UUID `json:"key_id"`
	UserID    string    `json:"user_id"`
	Address   string    `json:"address"`
	RequestID string    `json:"request_id"`
}

// Actions of audit events. What a prune deletes has the kinds of its change.
const (
	ActionConversationDeleted  = string(ConversationDeleted)
	ActionConversationExported = "conversation.exported"
	ActionConversationHanded   = "conversation.handed" // to another owner, or to other readers
	ActionShareCreated         = "share.created"
	ActionShareRevoked         = "share.revoked"
	ActionTenantDeleted        = "tenant.deleted"
)

// For returns the same Store for what a principal asks.
func (s *Store) For(p access.Principal) *Store {
	c := s.ForTenant(p.Tenant)
	c.actor, c.reader = p, p.Reader()
	return c
}

// ReadsAll reports whether the Store's principal reads all of the tenant's conversations.
func (s *Store) ReadsAll() bool { return s.reader == access.Everybody }

// CheckReader returns a fault.NotFound if the Store's principal may not read a
// conversation: before an answer that comes from elsewhere than the database. It costs no
// query where the principal reads all of the tenant's.
func (s *Store) CheckReader(ctx context.Context, conversationID uuid.UUID) error {
	if s.ReadsAll() {
		return nil
	}
	_, err := s.Conversation(ctx, conversationID)
	return err
}

// Audit stores what the Store's principal does. Methods that delete or share something
// store that by themselves, in their transaction.
func (s *Admin) Audit(ctx context.Context, e AuditEvent) (err error) {
	defer db.Wrap(&err, "tree.Admin.Audit(%s)", e.Action)
	p := db.InsertAuditEventParams{
		ID: toUUID(newID()), TenantID: s.tenant, At: now(), Action: e.Action, ConversationID: toUUID(e.ConversationID), SubjectID: toUUID(e.SubjectID),
		Detail: e.Detail, KeyID: toUUID(s.actor.Key), UserID: s.actor.User, RequestID: s.actor.Request,
	}
	if s.actor.Address.IsValid() {
		p.Address = s.actor.Address.String()
	}
	return s.q.InsertAuditEvent(ctx, p)
}

// AuditEvents lists what was done with the tenant's data, the newest first.
func (s *Admin) AuditEvents(ctx context.Context, p Paging) (_ Page[AuditEvent], err error) {
	defer db.Wrap(&err, "tree.Admin.AuditEvents")
	limit, before, err := p.From("audit", s.tenant)
	if err != nil {
		return Page[AuditEvent]{}, err
	}
	rows, err := s.q.ListAuditEvents(ctx, db.ListAuditEventsParams{TenantID: s.tenant, BeforeID: toUUID(before.ID), RowLimit: int32(limit) + 1})
	if err != nil {
		return Page[AuditEvent]{}, err
	}
	more := len(rows) > limit
	list := make([]AuditEvent, min(len(rows), limit))
	for i := range list {
		list[i] = fromAuditEvent(rows[i])
	}
	return paged(list, more, before, func(e AuditEvent) Position { return Position{ID: e.ID} }), nil
}

// ForgetAudit deletes what all tenants' audit events tell of the time before, and how
// many it deleted.
func (s *Admin) ForgetAudit(ctx context.Context, before time.Time) (deleted int, err error) {
	defer db.Wrap(&err, "tree.Admin.ForgetAudit(%s)", before)
	n, err := s.q.DeleteAuditEvents(ctx, before)
	return int(n), err
}

func fromAuditEvent(row db.AuditEvent) AuditEvent {
	return AuditEvent{
		ID: row.ID.Bytes, At: row.At.UTC(), Action: row.Action, ConversationID: row.ConversationID.Bytes, SubjectID: row.SubjectID.Bytes,
		Detail: row.Detail, KeyID: row.KeyID.Bytes, UserID: row.UserID, Address: row.Address, RequestID: row.RequestID,
	}
}

// AppendJSON appends the event's members. An absent id is null.
func (e AuditEvent) AppendJSON(dst []byte) []byte {
	dst = appendID(dst, `{"id":`, e.ID)
	dst = appendTime(dst, `,"at":`, e.At)
	dst = appendString(dst, `,"action":`, e.Action)
	dst = appendID(dst, `,"conversation_id":`, e.ConversationID)
	dst = appendID(dst, `,"subject_id":`, e.SubjectID)
	dst = appendString(dst, `,"detail":`, e.Detail)
	dst = appendID(dst, `,"key_id":`, e.KeyID)
	dst = appendString(dst, `,"user_id":`, e.UserID)
	dst = appendString(dst, `,"address":`, e.Address)
	dst = appendString(dst, `,"request_id":`, e.RequestID)
	return append(dst, '}')
}

// MarshalJSON is AppendJSON.
func (e AuditEvent) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil), nil }
