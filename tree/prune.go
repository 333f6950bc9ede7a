package tree

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// Prune deletes a message with all nodes below it, summaries included. Of a
// summary it deletes that one node, which undoes its compaction: the summary
// before it applies again.
//
// Replies to what is deleted, and what is left of those whose answers are, go too.
//
// If the active head is deleted, the head moves to the newest leaf below the
// pruned message's parent, or to the newest leaf of the tree where a root was
// pruned. The indexes of the later siblings close up.
//
// The cost grows with what is deleted, at about 25,000 nodes a second. Where most
// conversations are much smaller, Postgres may also read this conversation once.
func (s *Store) Prune(ctx context.Context, conversationID, id uuid.UUID) (p Pruned, err error) {
	defer db.Wrap(&err, "tree.Prune(%s, %s)", conversationID, id)
	err = s.dropping(ctx, conversationID, func(s *Store, c db.Conversation) error {
		return s.allowLongStatements(ctx, func() error {
			p, err = s.prune(ctx, c, id, 0)
			return err
		})
	})
	return p, err
}

// PruneLeaf prunes a message without child messages. Any other message is a
// fault.Conflict. If the message is the active head, back becomes the active head, or the
// message's parent where back isn't there or is uuid.Nil.
func (s *Histories) PruneLeaf(ctx context.Context, conversationID, id, back uuid.UUID) (p Pruned, err error) {
	defer db.Wrap(&err, "tree.Histories.PruneLeaf(%s, %s)", conversationID, id)
	err = s.store().dropping(ctx, conversationID, func(s *Store, c db.Conversation) error {
		leaf, err := s.Message(ctx, conversationID, id)
		if err != nil {
			return err
		}
		below, err := s.q.CountSiblings(ctx, db.CountSiblingsParams{ConversationID: c.ID, ParentID: toUUID(id)})
		if err == nil && below > 0 {
			err = fault.New(fault.Conflict, "has_children", "", "The message has others below it. Prune these first.")
		}
		if err != nil {
			return err
		}
		if uuid.UUID(c.HeadID.Bytes) == id {
			if _, err := s.Message(ctx, conversationID, back); errors.Is(err, fault.NotFound) || back == id {
				back = leaf.ParentID
			} else if err != nil {
				return err
			}
			if back != uuid.Nil {
				c.HeadID = toUUID(back)
			}
		}
		p, err = s.prune(ctx, c, id, 0)
		return err
	})
	return p, err
}

// ReplaceEnd replaces the end of the active branch, from a message to its head, by
// others. Without others the branch ends above the message, which is then the head, and
// above the parents that goes takes and that lead to nothing else.
//
// What is replaced stays where other branches begin at it, and as a branch where it is
// more than one message. If the head is another one by now, that is a fault.Conflict of
// the code changed_meanwhile, and of the code has_children if the branch would end above
// its root while there are others.
func (s *Histories) ReplaceEnd(ctx context.Context, conversationID, headID, id uuid.UUID, by []NewMessage, goes func(parent Message) bool) (err error) {
	defer db.Wrap(&err, "tree.Histories.ReplaceEnd(%s, %s to head %s)", conversationID, id, headID)
	return s.store().dropping(ctx, conversationID, func(s *Store, c db.Conversation) error {
		if uuid.UUID(c.HeadID.Bytes) != headID {
			return errHeadMoved
		}
		m, err := s.Message(ctx, conversationID, id)
		if err != nil {
			return err
		}
		below, err := s.q.CountSiblings(ctx, db.CountSiblingsParams{ConversationID: c.ID, ParentID: toUUID(id)})
		if err != nil {
			return err
		}
		if len(by) > 0 {
			made, err := s.AppendChain(ctx, conversationID, m.ParentID, by)
			if err == nil && below == 0 {
				c.HeadID = toUUID(made.Messages[len(by)-1].ID)
				_, err = s.prune(ctx, c, id, 0)
			}
			return err
		}
		top, err := s.highest(ctx, m, goes)
		switch {
		case err != nil:
			return err
		case top.ParentID == uuid.Nil && (below > 0 || top.Siblings.Count > 1):
			return fault.New(fault.Conflict, "has_children", "", "It is the first message, and others begin at it or stand beside it. Prune it, or delete the conversation.")
		case below > 0:
			_, err = s.UpdateConversation(ctx, conversationID, ConversationUpdate{HeadID: top.ParentID})
			return err
		case top.ParentID != uuid.Nil:
			c.HeadID = toUUID(top.ParentID)
		}
		_, err = s.prune(ctx, c, top.ID, 0)
		return err
	})
}

// prune prunes a message or a summary. Of the messages, so many stand elsewhere anew: the
// audit doesn't count them.
func (s *Store) prune(ctx context.Context, c db.Conversation, id uuid.UUID, anew int) (p Pruned, err error) {
	row, err := s.node(ctx, uuid.UUID(c.ID.Bytes), id)
	if err != nil {
		return p, orMissing(err, errMessageNotFound)
	}
	deleted, err := s.q.DeleteSubtree(ctx, db.DeleteSubtreeParams{ConversationID: c.ID, ID: toUUID(id), HeadID: c.HeadID})
	if err != nil {
		return p, err
	}
	p = Pruned{Messages: int(deleted.Messages), Summaries: int(deleted.Summaries), HeadID: uuid.UUID(c.HeadID.Bytes)}
	change := Change{ConversationID: uuid.UUID(c.ID.Bytes), Kind: MessagesPruned, MessageID: id, ParentID: uuid.UUID(row.Node.ParentID.Bytes), Messages: p.Messages}
	if p.Messages == 0 { // nothing that was said is gone
		change.Kind = SummaryDeleted
	}
	event := AuditEvent{Action: string(change.Kind), ConversationID: change.ConversationID, SubjectID: id, Detail: fmt.Sprintf("%d messages, %d summaries", p.Messages-anew, p.Summaries)}
	if err := s.Admin().Audit(ctx, event); err != nil {
		return p, err
	}
	if p.Messages == 0 {
		return p, s.note(ctx, change)
	}
	if err := s.forgetWords(ctx, c.ID, deleted.Ids); err != nil {
		return p, err
	}
	if err := s.closeGap(ctx, row.Node); err != nil {
		return p, err
	}
	lands := deleted.HadHead
	if !c.HeadID.Valid && deleted.HadReply { // which was to give it one
		running, err := s.q.ListRunningReplies(ctx, db.ListRunningRepliesParams{ConversationID: c.ID, TenantID: s.tenant, Reader: s.reader})
		if err != nil {
			return p, err
		}
		lands = len(running) == 0
	}
	if lands {
		if p.HeadID, err = s.landing(ctx, row.Node); err != nil {
			return p, err
		}
	}
	if err := s.q.MoveHead(ctx, db.MoveHeadParams{ID: c.ID, HeadID: toUUID(p.HeadID), UpdatedAt: now(), AddedMessages: -int32(p.Messages)}); err != nil {
		return p, err
	}
	return p, s.note(ctx, change)
}

// closeGap moves the siblings after a deleted message up by one.
func (s *Store) closeGap(ctx context.Context, n db.Node) error {
	for _, step := range []struct{ less, first, last int32 }{{1, n.SiblingIndex.Int32 + 1, math.MaxInt32}, {0, math.MinInt32, -1}} {
		var err error
		if n.ParentID.Valid {
			err = s.q.ShiftSiblings(ctx, db.ShiftSiblingsParams{ConversationID: n.ConversationID, ParentID: n.ParentID, Less: step.less, FirstIndex: step.first, LastIndex: step.last})
		} else {
			err = s.q.ShiftRoots(ctx, db.ShiftRootsParams{ConversationID: n.ConversationID, Less: step.less, FirstIndex: step.first, LastIndex: step.last})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// landing is where the active head goes when it was pruned with n.
func (s *Store) landing(ctx context.Context, n db.Node) (uuid.UUID, error) {
	if n.ParentID.Valid {
		at := Place{uuid.UUID(n.ConversationID.Bytes), uuid.UUID(n.ParentID.Bytes)}
		leaves, err := s.Index().newestLeaves(ctx, []Place{at})
		return leaves[at], err
	}
	return s.newestLeaf(ctx, uuid.UUID(n.ConversationID.Bytes))
}

// newestLeaf is the newest leaf of a whole tree, uuid.Nil of an empty one.
func (s *Store) newestLeaf(ctx context.Context, conversationID uuid.UUID) (uuid.UUID, error) {
	rows, err := s.q.ListBranches(ctx, db.ListBranchesParams{
		ConversationID: toUUID(conversationID), BeforeCreatedAt: first.time(), BeforeID: toUUID(first.ID), RowLimit: 1, ByteLimit: MaxPageBytes,
	})
	if err != nil || len(rows) == 0 {
		return uuid.Nil, err
	}
	return uuid.UUID(rows[0].Node.ID.Bytes), nil
}

// highest goes up from a message for as long as it leads to no other message and
// goes takes the parent, and returns where it ends. goes gets a message's id, parent,
// role and metadata. Each query reads twice as many parents as the one before, so
// there are few queries, and few parents are read for nothing.
func (s *Store) highest(ctx context.Context, m Message, goes func(parent Message) bool) (Message, error) {
	for limit := int32(2); m.ParentID != uuid.Nil && m.Siblings.Count == 1; limit *= 2 {
		above, err := s.q.ListAncestors(ctx, db.ListAncestorsParams{ConversationID: toUUID(m.ConversationID), ID: toUUID(m.ID), RowLimit: limit})
		if err != nil || len(above) == 0 {
			return m, err
		}
		for _, row := range above {
			parent := fromMessage(db.Node{ConversationID: toUUID(m.ConversationID), ID: row.ID, ParentID: row.ParentID, Role: row.Role, Metadata: row.Metadata}, row.SiblingCount, nil)
			if m.Siblings.Count > 1 || !goes(parent) {
				return m, nil
			}
			m = parent
		}
	}
	return m, nil
}
