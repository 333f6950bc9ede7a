package tree

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// Retract deletes an answer, and the messages before it that its request
// brought. brought returns the number of these messages. A message from which
// another branch goes on stays. If a branch goes on from the answer itself, the
// answer is marked as deleted. A marked answer is deleted together with the
// last branch that goes on from it. A conversation without any message left
// stays, empty. left is how many messages the conversation still has.
//
// An answer that is marked already, or absent, is a fault.NotFound.
func (s *Histories) Retract(ctx context.Context, conversationID, id uuid.UUID, brought func(Message) int) (left int, err error) {
	defer db.Wrap(&err, "tree.Histories.Retract(%s, %s)", conversationID, id)
	err = s.store().dropping(ctx, conversationID, func(s *Store, c db.Conversation) error {
		if deleted, err := s.Histories().Retracted(ctx, conversationID, id); deleted || err != nil {
			return cmp.Or[error](err, errMessageNotFound)
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
			return left, s.markDeleted(ctx, m)
		}
		top := m
		if n := brought(m); n > 0 {
			if top, err = s.highest(ctx, m, func(Message) bool { n--; return n >= 0 }); err != nil {
				return left, err
			}
		}
		pruned, err := s.prune(ctx, c, top.ID, 0)
		if err != nil {
			return left, err
		}
		left -= pruned.Messages
		c.HeadID, c.MessageCount = toUUID(pruned.HeadID), int32(left)
		id = top.ParentID
		if id == uuid.Nil || top.Siblings.Count > 1 {
			return left, nil
		}
		if deleted, err := s.Histories().Retracted(ctx, conversationID, id); !deleted || err != nil {
			return left, err
		}
	}
}

// markDeleted marks an answer as deleted, which goes with the answer. What is left of
// its log isn't to be read any more.
func (s *Store) markDeleted(ctx context.Context, m Message) error {
	err := s.q.MarkReplyDeleted(ctx, db.MarkReplyDeletedParams{ConversationID: toUUID(m.ConversationID), MessageID: toUUID(m.ID), ParentID: toUUID(m.ParentID), AliveAt: now()})
	if err != nil {
		return err
	}
	return s.forgetEvents(ctx, m.ConversationID, m.ID)
}

// Drop deletes a reply that has no answer in the tree: none is stored after
// that. Where an answer came to be stored meanwhile, it changes nothing and returns
// that answer, which Retract deletes.
func (s *Replies) Drop(ctx context.Context, conversationID, id uuid.UUID) (answer *Message, err error) {
	defer db.Wrap(&err, "tree.Replies.Drop(%s, %s)", conversationID, id)
	err = s.store().inTurn(ctx, conversationID, func(s *Store) error {
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
		return s.q.DropReply(ctx, db.DropReplyParams{ConversationID: toUUID(conversationID), MessageID: toUUID(id)})
	})
	return answer, err
}

// Retracted reports whether an answer is marked as deleted.
func (s *Histories) Retracted(ctx context.Context, conversationID, id uuid.UUID) (bool, error) {
	r, err := s.store().Replies().One(ctx, conversationID, id)
	return r.State == StateDeleted, ignoreNotFound(err)
}
