package tree

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// A Checkpoint is the text of an answer that is still streaming, as far as it has
// come. It isn't a node: no read shows it, and it is deleted with its
// conversation.
type Checkpoint struct {
	TenantID       string // as Checkpoints tells it
	ConversationID uuid.UUID
	MessageID      uuid.UUID // that the answer will have
	ParentID       uuid.UUID // message that is answered
	MoveHeadFrom   uuid.UUID // active head that the answer takes the place of; uuid.Nil where it becomes the active head only if there is none
	ServerID       string    // server that runs the reply
	Model          string
	Content        string
	Refusal        string
	Reasoning      string    // what the model thought first
	SavedAt        time.Time // set by SaveCheckpoint
}

// SaveCheckpoint stores a checkpoint, in place of an earlier one of the same
// message.
func (s *Store) SaveCheckpoint(ctx context.Context, c Checkpoint) (err error) {
	defer db.Wrap(&err, "tree.SaveCheckpoint(%s, %s)", c.ConversationID, c.MessageID)
	return s.q.SaveCheckpoint(ctx, db.SaveCheckpointParams{
		ConversationID: toUUID(c.ConversationID), MessageID: toUUID(c.MessageID), ParentID: toUUID(c.ParentID), MoveHeadFrom: toUUID(c.MoveHeadFrom),
		ServerID: c.ServerID, Model: c.Model, Content: c.Content, Refusal: c.Refusal, Reasoning: c.Reasoning, SavedAt: now(),
	})
}

// Checkpoint reads what is saved of an answer of this tenant's. Where nothing is,
// it is a fault.NotFound.
func (s *Store) Checkpoint(ctx context.Context, conversationID, messageID uuid.UUID) (_ Checkpoint, err error) {
	defer db.Wrap(&err, "tree.Checkpoint(%s, %s)", conversationID, messageID)
	row, err := s.q.GetCheckpoint(ctx, db.GetCheckpointParams{ConversationID: toUUID(conversationID), MessageID: toUUID(messageID), TenantID: s.tenant})
	if err != nil {
		return Checkpoint{}, orMissing(err, errNoReplyState)
	}
	return Checkpoint{
		TenantID: s.tenant, ConversationID: conversationID, MessageID: messageID,
		ParentID: uuid.UUID(row.ParentID.Bytes), MoveHeadFrom: uuid.UUID(row.MoveHeadFrom.Bytes), ServerID: row.ServerID, Model: row.Model,
		Content: row.Content, Refusal: row.Refusal, SavedAt: row.SavedAt.UTC(),
	}, nil
}

// DropCheckpoint deletes the checkpoint of a message, if there is one.
func (s *Store) DropCheckpoint(ctx context.Context, conversationID, messageID uuid.UUID) (err error) {
	defer db.Wrap(&err, "tree.DropCheckpoint(%s, %s)", conversationID, messageID)
	return s.q.DropCheckpoint(ctx, db.DropCheckpointParams{ConversationID: toUUID(conversationID), MessageID: toUUID(messageID)})
}

// Checkpoints lists the checkpoints of all tenants without their text: tenants,
// ids, servers and times.
func (s *Store) Checkpoints(ctx context.Context) (_ []Checkpoint, err error) {
	defer db.Wrap(&err, "tree.Checkpoints")
	rows, err := s.q.ListCheckpoints(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Checkpoint, len(rows))
	for i, r := range rows {
		list[i] = Checkpoint{
			TenantID: r.TenantID, ConversationID: uuid.UUID(r.ConversationID.Bytes), MessageID: uuid.UUID(r.MessageID.Bytes),
			ServerID: r.ServerID, SavedAt: r.SavedAt.UTC(),
		}
	}
	return list, nil
}

// TakeCheckpoint turns a checkpoint that Checkpoints listed into a message, and
// deletes the checkpoint, in one transaction. answer makes the message.
// TakeCheckpoint stores nothing, and returns stored false, if the checkpoint is
// gone or was saved again, if a message with its id exists, or if the parent was
// pruned.
func (s *Store) TakeCheckpoint(ctx context.Context, listed Checkpoint, answer func(Checkpoint) NewMessage) (m Message, stored bool, err error) {
	defer db.Wrap(&err, "tree.TakeCheckpoint(%s, %s)", listed.ConversationID, listed.MessageID)
	err = s.ForTenant(listed.TenantID).inTx(ctx, func(s *Store) error {
		conversation, err := s.lock(ctx, listed.ConversationID) // as all that write do, before they change anything
		if err != nil {
			return ignoreNotFound(err)
		}
		row, err := s.q.TakeCheckpoint(ctx, db.TakeCheckpointParams{
			ConversationID: toUUID(listed.ConversationID), MessageID: toUUID(listed.MessageID), SavedAt: listed.SavedAt,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		c := listed
		c.ParentID, c.MoveHeadFrom = uuid.UUID(row.ParentID.Bytes), uuid.UUID(row.MoveHeadFrom.Bytes)
		c.Model, c.Content, c.Refusal, c.Reasoning = row.Model, row.Content, row.Refusal, row.Reasoning
		head := KeepHead()
		if c.MoveHeadFrom != uuid.Nil || !conversation.HeadID.Valid {
			head = MoveHeadFrom(c.MoveHeadFrom)
		}
		m, stored, err = s.Append(ctx, c.ConversationID, c.ParentID, answer(c), head)
		if fault.Refused(err) {
			return nil // and the checkpoint goes: nobody could store it later either
		}
		return err
	})
	return m, stored && err == nil, err
}

func ignoreNotFound(err error) error {
	if errors.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
