package tree

import (
	"context"
	"encoding/json"
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
	Reasoning      string          // what the model thought first
	Marks          []byte          // where each event ends in the texts, in the form of package reply
	Started        json.RawMessage // what the first event says, in the form of package reply; nil until the model is asked
	SavedAt        time.Time       // set by ClaimReply and SaveCheckpoint
}

// ErrReplyLost says that another server has taken a reply, as one that gave no
// sign of life, or that it runs a reply of the same id. What a server that stalled
// brings later must not contradict what was told meanwhile.
var ErrReplyLost = errors.New("another server has the reply")

// ClaimReply stores the first checkpoint of a reply, and the state that it runs,
// whose metadata are what the request adds to the answer. newTry says that an
// earlier reply of the id may have ended with nothing to store. If an answer of
// the id is stored, or another server runs the reply, or took it, ClaimReply
// changes nothing and returns an ErrReplyLost.
func (s *Store) ClaimReply(ctx context.Context, c Checkpoint, metadata json.RawMessage, newTry bool) (err error) {
	defer db.Wrap(&err, "tree.ClaimReply(%s, %s)", c.ConversationID, c.MessageID)
	return s.inTurn(ctx, c.ConversationID, func(s *Store) error {
		if _, err := s.lock(ctx, c.ConversationID); err != nil {
			return err
		}
		return s.claimReply(ctx, c, metadata, newTry)
	})
}

func (s *Store) claimReply(ctx context.Context, c Checkpoint, metadata json.RawMessage, newTry bool) error {
	n, err := s.q.ClaimCheckpoint(ctx, db.ClaimCheckpointParams{
		ConversationID: toUUID(c.ConversationID), MessageID: toUUID(c.MessageID), ParentID: toUUID(c.ParentID), MoveHeadFrom: toUUID(c.MoveHeadFrom),
		ServerID: c.ServerID, Model: c.Model, Content: c.Content, Refusal: c.Refusal, Reasoning: c.Reasoning, Marks: orEmpty(c.Marks), Started: c.Started,
		SavedAt: now(), NewTry: newTry,
	})
	if err := orLost(n, err); err != nil {
		return err
	}
	if err := s.PutReplyState(ctx, ReplyState{ConversationID: c.ConversationID, MessageID: c.MessageID, State: StateRunning, Metadata: metadata}); err != nil {
		return err
	}
	return s.note(ctx, Change{ConversationID: c.ConversationID, Kind: ReplyRunning, MessageID: c.MessageID, ParentID: c.ParentID})
}

// BeginsReply makes Append or AppendChain also do what ClaimReply does with a
// newTry, in one transaction with the messages. The last of them is what the reply
// answers. So a conversation whose active head is to move with the answer is never
// left with a message, no active head and no reply. If the messages are stored
// already, nothing is claimed.
func BeginsReply(c Checkpoint, metadata json.RawMessage) AppendOption {
	return func(o *appendOptions) { o.begins = &begun{c, metadata} }
}

type begun struct {
	Checkpoint
	metadata json.RawMessage
}

// SaveCheckpoint stores a checkpoint in place of the earlier one of the same
// message. If the server that c names doesn't run the reply any more, it changes
// nothing and returns an ErrReplyLost.
func (s *Store) SaveCheckpoint(ctx context.Context, c Checkpoint) (err error) {
	defer db.Wrap(&err, "tree.SaveCheckpoint(%s, %s)", c.ConversationID, c.MessageID)
	return orLost(s.q.SaveCheckpoint(ctx, db.SaveCheckpointParams{
		ConversationID: toUUID(c.ConversationID), MessageID: toUUID(c.MessageID), ServerID: c.ServerID,
		Content: c.Content, Refusal: c.Refusal, Reasoning: c.Reasoning, Marks: orEmpty(c.Marks), Started: c.Started, SavedAt: now(),
	}))
}

// A ReplyEnd tells how a reply ended of which nothing is stored.
type ReplyEnd struct {
	ConversationID uuid.UUID
	MessageID      uuid.UUID       // that the answer would have had
	HeadID         uuid.UUID       // message that was answered; uuid.Nil to leave the active head as it is
	ServerID       string          // server that claimed the reply; "" where none did
	Metadata       json.RawMessage // nil: nothing is told
}

// EndReply tells how a reply ended, and deletes its checkpoint if it was claimed.
// If the conversation has no active head and no other reply under way, the message
// that was answered becomes the active head. EndReply returns an ErrReplyLost like
// SaveCheckpoint.
func (s *Store) EndReply(ctx context.Context, e ReplyEnd) (err error) {
	defer db.Wrap(&err, "tree.EndReply(%s, %s)", e.ConversationID, e.MessageID)
	return s.inTurn(ctx, e.ConversationID, func(s *Store) error {
		c, err := s.lock(ctx, e.ConversationID)
		if err != nil {
			return ignoreNotFound(err) // and nothing of it is left
		}
		if e.ServerID != "" {
			if err := s.endCheckpoint(ctx, e.ConversationID, e.MessageID, e.ServerID); err != nil {
				return err
			}
		}
		if e.Metadata != nil {
			if err := s.PutReplyState(ctx, ReplyState{ConversationID: e.ConversationID, MessageID: e.MessageID, State: StateEnded, Metadata: e.Metadata}); err != nil {
				return err
			}
		}
		if e.HeadID != uuid.Nil {
			if err := s.giveHead(ctx, c, e.HeadID); err != nil {
				return err
			}
		}
		return s.note(ctx, Change{ConversationID: e.ConversationID, Kind: ReplyEnded, MessageID: e.MessageID})
	})
}

// giveHead makes a message the active head of a conversation that has none, after
// the last of its replies has ended. Where that message was pruned, the newest leaf
// becomes the active head.
func (s *Store) giveHead(ctx context.Context, c db.Conversation, headID uuid.UUID) error {
	if c.HeadID.Valid {
		return nil
	}
	conversationID := uuid.UUID(c.ID.Bytes)
	running, err := s.q.HasCheckpoints(ctx, c.ID)
	if running || err != nil {
		return err
	}
	if _, err := s.Message(ctx, conversationID, headID); errors.Is(err, fault.NotFound) {
		headID, err = s.newestLeaf(ctx, conversationID)
		if headID == uuid.Nil || err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if err := s.q.MoveHead(ctx, db.MoveHeadParams{ID: c.ID, HeadID: toUUID(headID), UpdatedAt: now()}); err != nil {
		return err
	}
	return s.note(ctx, Change{ConversationID: conversationID, Kind: HeadMoved, MessageID: headID})
}

// EndsReply makes Append delete the checkpoint and the state of the reply whose
// answer the message is, in one transaction with the message. If the server doesn't
// run the reply any more, Append stores nothing and returns an ErrReplyLost.
func EndsReply(serverID string) AppendOption {
	return func(o *appendOptions) { o.endsReplyOf = serverID }
}

func (s *Store) endCheckpoint(ctx context.Context, conversationID, messageID uuid.UUID, serverID string) error {
	return orLost(s.q.EndCheckpoint(ctx, db.EndCheckpointParams{ConversationID: toUUID(conversationID), MessageID: toUUID(messageID), ServerID: serverID}))
}

func orLost(rows int64, err error) error {
	if err == nil && rows == 0 {
		return ErrReplyLost
	}
	return err
}

// orEmpty is a value for a column that isn't null.
func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
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
		Content: row.Content, Refusal: row.Refusal, Reasoning: row.Reasoning, Marks: row.Marks, Started: row.Started, SavedAt: row.SavedAt.UTC(),
	}, nil
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
// deletes the checkpoint, in one transaction. answer makes the message of the
// checkpoint and of what the request adds to its metadata, and says under which
// message it is stored: the checkpoint's parent, or one that was stored with Auxiliary
// below it. A message without a body isn't stored. TakeCheckpoint stores no message, and returns stored false, if the
// checkpoint is gone or was saved again, if a message with its id exists, if it was
// told that the reply ended, or that it was deleted, or if the parent was pruned. If then nothing tells how
// the reply ended, it stores the metadata of the message as those of a reply that
// ended. A conversation without an active head gets one as with EndReply.
func (s *Store) TakeCheckpoint(ctx context.Context, listed Checkpoint, answer func(c Checkpoint, added json.RawMessage) (m NewMessage, parentID uuid.UUID)) (m Message, stored bool, err error) {
	defer db.Wrap(&err, "tree.TakeCheckpoint(%s, %s)", listed.ConversationID, listed.MessageID)
	err = s.ForTenant(listed.TenantID).inTurn(ctx, listed.ConversationID, func(s *Store) error {
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
		state, err := s.ReplyState(ctx, listed.ConversationID, listed.MessageID)
		if ignoreNotFound(err) != nil {
			return err
		}
		if state.State == StateEnded || state.State == StateDeleted {
			return s.giveHead(ctx, conversation, uuid.UUID(row.ParentID.Bytes))
		}
		c := listed
		c.ParentID, c.MoveHeadFrom = uuid.UUID(row.ParentID.Bytes), uuid.UUID(row.MoveHeadFrom.Bytes)
		c.Model, c.Content, c.Refusal, c.Reasoning = row.Model, row.Content, row.Refusal, row.Reasoning
		c.Marks, c.Started = row.Marks, row.Started
		draft, parentID := answer(c, state.Metadata)
		if draft.Body != nil {
			head := KeepHead()
			if c.MoveHeadFrom != uuid.Nil || !conversation.HeadID.Valid {
				head = MoveHeadFrom(c.MoveHeadFrom)
			}
			options := []AppendOption{head}
			if parentID != c.ParentID {
				options = append(options, Behind(c.ParentID))
			}
			m, stored, err = s.Append(ctx, c.ConversationID, parentID, draft, options...)
			if errors.Is(err, fault.Conflict) || errors.Is(err, fault.NotFound) { // a pruned branch's reply is gone with it
				err = s.giveHead(ctx, conversation, c.ParentID)
			}
			if err == nil {
				return s.DropReplyState(ctx, c.ConversationID, c.MessageID)
			}
			if !fault.Refused(err) {
				return err
			}
		} else if _, err := s.Message(ctx, c.ConversationID, c.MessageID); err == nil {
			return s.DropReplyState(ctx, c.ConversationID, c.MessageID)
		}
		if err := s.giveHead(ctx, conversation, c.ParentID); err != nil {
			return err
		}
		if err := s.PutReplyState(ctx, ReplyState{ConversationID: c.ConversationID, MessageID: c.MessageID, State: StateEnded, Metadata: draft.Metadata}); err != nil {
			return err
		}
		return s.note(ctx, Change{ConversationID: c.ConversationID, Kind: ReplyEnded, MessageID: c.MessageID})
	})
	return m, stored && err == nil, err
}

func ignoreNotFound(err error) error {
	if errors.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
