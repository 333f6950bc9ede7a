package tree

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// A ReplyState is what is known of a reply in addition to its answer, or while
// there is no answer.
type ReplyState struct {
	ConversationID uuid.UUID
	MessageID      uuid.UUID // that the answer has, or will have
	State          State
	Metadata       json.RawMessage // of the answer: what the request adds and, of a reply that ended, how
	At             time.Time       // set by PutReplyState
}

// A State says how far a reply is.
type State string

const (
	StateRunning  State = "running"
	StateStopping State = "stopping" // a server that doesn't run it asked for its end
	StateEnded    State = "ended"    // with nothing to store
	StateDeleted  State = "deleted"  // its answer is there for other branches alone, or was never stored
)

// PutReplyState stores the state of a reply, in place of an earlier one.
func (s *Store) PutReplyState(ctx context.Context, r ReplyState) (err error) {
	defer db.Wrap(&err, "tree.PutReplyState(%s, %s, %s)", r.ConversationID, r.MessageID, r.State)
	metadata, err := checkExtra(r.Metadata, "metadata")
	if err != nil {
		return err
	}
	if metadata == nil {
		metadata = none
	}
	return s.q.PutReplyState(ctx, db.PutReplyStateParams{
		ConversationID: toUUID(r.ConversationID), MessageID: toUUID(r.MessageID), State: string(r.State), Metadata: metadata, At: now(),
	})
}

// ReplyState reads the state of a reply. A reply without a stored state is a
// fault.NotFound.
func (s *Store) ReplyState(ctx context.Context, conversationID, messageID uuid.UUID) (_ ReplyState, err error) {
	defer db.Wrap(&err, "tree.ReplyState(%s, %s)", conversationID, messageID)
	row, err := s.q.GetReplyState(ctx, db.GetReplyStateParams{ConversationID: toUUID(conversationID), MessageID: toUUID(messageID), TenantID: s.tenant})
	if err != nil {
		return ReplyState{}, orMissing(err, errNoReplyState)
	}
	return ReplyState{
		ConversationID: conversationID, MessageID: messageID, State: State(row.State), Metadata: row.Metadata, At: row.At.UTC(),
	}, nil
}

// RepliesTo returns the states of the replies that run and answer a message, as
// far as their servers saved something of them.
func (s *Store) RepliesTo(ctx context.Context, conversationID, parentID uuid.UUID) (_ []ReplyState, err error) {
	defer db.Wrap(&err, "tree.RepliesTo(%s, %s)", conversationID, parentID)
	rows, err := s.q.ListRepliesTo(ctx, db.ListRepliesToParams{ConversationID: toUUID(conversationID), ParentID: toUUID(parentID), TenantID: s.tenant})
	out := make([]ReplyState, len(rows))
	for i, row := range rows {
		out[i] = ReplyState{ConversationID: conversationID, MessageID: uuid.UUID(row.MessageID.Bytes), State: StateRunning, Metadata: row.Metadata}
	}
	return out, err
}

var errNoReplyState = fault.New(fault.NotFound, "reply_not_found", "", "Nothing is known of a reply of this id.")

// StopReply asks the server that runs a reply to end it, and reports whether
// the reply runs.
func (s *Store) StopReply(ctx context.Context, conversationID, messageID uuid.UUID) (_ bool, err error) {
	defer db.Wrap(&err, "tree.StopReply(%s, %s)", conversationID, messageID)
	n, err := s.q.StopReply(ctx, db.StopReplyParams{ConversationID: toUUID(conversationID), MessageID: toUUID(messageID), At: now()})
	return n > 0, err
}

// DropReplyState deletes the state of a reply, if there is one.
func (s *Store) DropReplyState(ctx context.Context, conversationID, messageID uuid.UUID) (err error) {
	defer db.Wrap(&err, "tree.DropReplyState(%s, %s)", conversationID, messageID)
	return s.q.DropReplyState(ctx, db.DropReplyStateParams{ConversationID: toUUID(conversationID), MessageID: toUUID(messageID)})
}

// ForgetReplyStates deletes the states of replies, of every tenant, that ended
// before a time.
func (s *Store) ForgetReplyStates(ctx context.Context, before time.Time) (err error) {
	defer db.Wrap(&err, "tree.ForgetReplyStates")
	return s.q.ForgetReplyStates(ctx, before)
}

// Retract deletes an answer, and the messages before it that its request
// brought. brought returns the number of these messages. A message from which
// another branch goes on stays. If a branch goes on from the answer itself, the
// answer is marked as deleted. A marked answer is deleted together with the
// last branch that goes on from it. A conversation without any message left
// stays, empty. left is how many messages the conversation still has.
//
// An answer that is marked already, or absent, is a fault.NotFound.
func (s *Store) Retract(ctx context.Context, conversationID, id uuid.UUID, brought func(Message) int) (left int, err error) {
	defer db.Wrap(&err, "tree.Retract(%s, %s)", conversationID, id)
	err = s.dropping(ctx, conversationID, func(s *Store, c db.Conversation) error {
		if deleted, err := s.Retracted(ctx, conversationID, id); deleted || err != nil {
			return orElse(err, errMessageNotFound)
		}
		left, err = s.retract(ctx, c, id, brought)
		return err
	})
	return left, err
}

func (s *Store) retract(ctx context.Context, c db.Conversation, id uuid.UUID, brought func(Message) int) (left int, err error) {
	conversationID := uuid.UUID(c.ID.Bytes)
	left = int(c.MessageCount)
	for {
		m, err := s.Message(ctx, conversationID, id)
		if err != nil {
			return left, err
		}
		children, err := s.q.CountSiblings(ctx, db.CountSiblingsParams{ConversationID: c.ID, ParentID: toUUID(id)})
		if err != nil {
			return left, err
		}
		if children > 0 {
			return left, s.PutReplyState(ctx, ReplyState{ConversationID: conversationID, MessageID: id, State: StateDeleted})
		}
		top := m
		if n := brought(m); n > 0 {
			if top, err = s.highest(ctx, m, func(Message) bool { n--; return n >= 0 }); err != nil {
				return left, err
			}
		}
		if err := s.DropReplyState(ctx, conversationID, id); err != nil {
			return left, err
		}
		pruned, err := s.prune(ctx, c, top.ID)
		if err != nil {
			return left, err
		}
		left -= pruned.Messages
		c.HeadID, c.MessageCount = toUUID(pruned.HeadID), int32(left)
		id = top.ParentID
		if id == uuid.Nil || top.Siblings.Count > 1 {
			return left, nil
		}
		if deleted, err := s.Retracted(ctx, conversationID, id); !deleted || err != nil {
			return left, err
		}
	}
}

// DropReply marks a reply as deleted that has no answer in the tree: none is stored
// after that from what was saved of it. Where an answer came to be stored meanwhile,
// it changes nothing and returns that answer, which Retract deletes.
func (s *Store) DropReply(ctx context.Context, conversationID, id uuid.UUID) (answer *Message, err error) {
	defer db.Wrap(&err, "tree.DropReply(%s, %s)", conversationID, id)
	err = s.inTurn(ctx, conversationID, func(s *Store) error {
		if _, err := s.lock(ctx, conversationID); err != nil {
			return err
		}
		m, err := s.Message(ctx, conversationID, id)
		if err == nil {
			answer = &m
			return nil
		}
		if !errors.Is(err, fault.NotFound) {
			return err
		}
		return s.PutReplyState(ctx, ReplyState{ConversationID: conversationID, MessageID: id, State: StateDeleted})
	})
	return answer, err
}

// Retracted reports whether an answer is marked as deleted.
func (s *Store) Retracted(ctx context.Context, conversationID, id uuid.UUID) (bool, error) {
	r, err := s.ReplyState(ctx, conversationID, id)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	return r.State == StateDeleted, nil
}

// orElse is err, or other where it is nil.
func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
