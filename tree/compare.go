package tree

import (
	"context"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

// A Comparison is two branches of a conversation from where they part.
type Comparison struct {
	ConversationID uuid.UUID
	AncestorID     uuid.UUID // deepest message that both have; uuid.Nil where they begin at different roots
	Left, Right    Side
}

// A Side is what one of two branches has below the message at which they part.
type Side struct {
	HeadID   uuid.UUID
	Messages int   // all of them; 0 where the branches part at the head
	Tokens   int64 // of all of them, as contexts count
	Replies  []ModelUsage
	Page     Page[Message] // the last of them, oldest first; Next is a cursor of Transcript
}

// Compare returns what two branches have that the other one lacks: up to limit messages
// of each, from its head back. A head of uuid.Nil is the active head. An absent message is a
// fault.NotFound. The cost is that of what stands below the message at which they part,
// wherever that is.
func (s *Store) Compare(ctx context.Context, conversationID, left, right uuid.UUID, limit int) (c Comparison, err error) {
	defer db.Wrap(&err, "tree.Compare(%s, %s, %s)", conversationID, left, right)
	c.ConversationID = conversationID
	heads := [2]Message{}
	for i, id := range []uuid.UUID{left, right} {
		if id == uuid.Nil {
			if id, err = s.Head(ctx, conversationID); err != nil {
				return c, err
			}
		}
		if heads[i], err = s.Message(ctx, conversationID, id); err != nil {
			return c, missingIn(err, []string{"left", "right"}[i])
		}
	}
	depth, tokens := -1, int64(0)
	row, err := s.q.GetParting(ctx, db.GetPartingParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader, LeftID: toUUID(heads[0].ID), RightID: toUUID(heads[1].ID)})
	switch {
	case err == nil:
		c.AncestorID, depth, tokens = uuid.UUID(row.ID.Bytes), int(row.Depth), row.PathTokens
	case !isNoRows(err):
		return c, err
	}
	for i, side := range []*Side{&c.Left, &c.Right} {
		if *side, err = s.side(ctx, heads[i], depth+1, limit); err != nil {
			return c, err
		}
		side.Tokens = heads[i].PathTokens - tokens
	}
	return c, nil
}

// side reads the messages of a branch from a depth on.
func (s *Store) side(ctx context.Context, head Message, from, limit int) (side Side, err error) {
	side.HeadID, side.Messages = head.ID, head.Depth+1-from
	if side.Messages == 0 {
		return side, nil
	}
	if limit == 0 {
		limit = DefaultPage
	}
	if side.Page, err = s.Transcript(ctx, head.ConversationID, head.ID, Paging{Limit: min(limit, side.Messages)}); err != nil {
		return side, err
	}
	if page := &side.Page; page.Data[0].Depth == from {
		page.Next = "" // what comes before is on both branches
	}
	rows, err := s.q.ListBranchUsage(ctx, db.ListBranchUsageParams{ConversationID: toUUID(head.ConversationID), TenantID: s.tenant, Reader: s.reader, HeadID: toUUID(head.ID), FromDepth: int32(from)})
	for _, r := range rows {
		side.Replies = append(side.Replies, ModelUsage{r.Model, int(r.Calls), int(r.PromptTokens), int(r.CompletionTokens), int(r.ReasoningTokens)})
	}
	return side, err
}
