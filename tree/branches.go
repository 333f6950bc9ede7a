package tree

import (
	"context"
	"iter"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

// Message reads one message. The id of a summary is a fault.NotFound, because a
// summary isn't a message.
func (s *Store) Message(ctx context.Context, conversationID, id uuid.UUID) (_ Message, err error) {
	defer db.Wrap(&err, "tree.Message(%s, %s)", conversationID, id)
	row, err := s.node(ctx, conversationID, id)
	if err != nil {
		return Message{}, orMissing(err, errMessageNotFound)
	}
	if row.Node.Kind != string(KindMessage) {
		return Message{}, errMessageNotFound
	}
	m := fromMessage(row.Node, row.SiblingCount, row.Annotation)
	return m, s.FindSources(ctx, conversationID, []Message{m})
}

// Answer reads an assistant's message for a branch that goes on from it. It has no
// Siblings. A message of another role, and one that is marked as deleted (Retract),
// are a fault.NotFound.
func (s *Store) Answer(ctx context.Context, conversationID, id uuid.UUID) (_ Message, err error) {
	defer db.Wrap(&err, "tree.Answer(%s, %s)", conversationID, id)
	row, err := s.q.GetAnswer(ctx, db.GetAnswerParams{ConversationID: toUUID(conversationID), ID: toUUID(id), TenantID: s.tenant, Reader: s.reader})
	if err != nil {
		return Message{}, orMissing(err, errMessageNotFound)
	}
	m := fromMessage(row, 0, nil)
	m.Siblings = Siblings{}
	return m, nil
}

func (s *Store) node(ctx context.Context, conversationID, id uuid.UUID) (db.GetNodeRow, error) {
	return s.q.GetNode(ctx, db.GetNodeParams{ConversationID: toUUID(conversationID), ID: toUUID(id), TenantID: s.tenant, Reader: s.reader})
}

// Children lists the messages under a message, or the roots where id is
// uuid.Nil, in sibling order.
func (s *Store) Children(ctx context.Context, conversationID, id uuid.UUID, p Paging) (_ Page[Message], err error) {
	defer db.Wrap(&err, "tree.Children(%s, %s)", conversationID, id)
	limit, after, err := p.From("children", s.tenant, conversationID.String(), id.String())
	if err != nil {
		return Page[Message]{}, err
	}
	from := int32(0)
	if p.Cursor != "" {
		if from = int32(after.Key); int64(from) != after.Key || from < 0 || from == math.MaxInt32 {
			return Page[Message]{}, errCursor
		}
	}
	if id == uuid.Nil {
		_, err = s.Conversation(ctx, conversationID)
	} else {
		_, err = s.Message(ctx, conversationID, id)
	}
	if err != nil {
		return Page[Message]{}, err
	}
	siblings, err := s.q.CountSiblings(ctx, db.CountSiblingsParams{ConversationID: toUUID(conversationID), ParentID: toUUID(id)})
	if err != nil {
		return Page[Message]{}, err
	}
	rows, err := s.q.ListChildren(ctx, db.ListChildrenParams{
		ConversationID: toUUID(conversationID), ParentID: toUUID(id), AfterIndex: from, RowLimit: int32(limit), ByteLimit: MaxPageBytes,
	})
	if err != nil {
		return Page[Message]{}, err
	}
	out, more := make([]Message, len(rows)), false
	for i, row := range rows {
		out[i] = fromMessage(row.Node, siblings, row.Annotation)
		more = row.Node.SiblingIndex.Int32 < siblings
	}
	return paged(out, more, after, func(m Message) Position { return Position{Key: int64(m.Siblings.Index), ID: m.ID} }), nil
}

// NewestChildren returns the newest messages below a message, or the newest roots
// where id is uuid.Nil, the newest first and limit of them at most. They have no
// Siblings.Count. An absent message has none, as has an absent conversation. It is
// one query.
func (s *Histories) NewestChildren(ctx context.Context, conversationID, id uuid.UUID, limit int) (out []Message, err error) {
	defer db.Wrap(&err, "tree.Histories.NewestChildren(%s, %s)", conversationID, id)
	rows, err := s.q.ListNewestChildren(ctx, db.ListNewestChildrenParams{ConversationID: toUUID(conversationID), ParentID: toUUID(id), TenantID: s.tenant, Reader: s.reader, RowLimit: int32(limit)})
	for _, row := range rows {
		out = append(out, fromMessage(row, 0, nil))
	}
	return out, err
}

// Branches lists the leaves of the conversation, which are the heads of its
// branches, newest first. It reads the conversation's part of two indexes: about
// 100 ms for 100,000 nodes.
func (s *Store) Branches(ctx context.Context, conversationID uuid.UUID, p Paging) (_ Page[Message], err error) {
	defer db.Wrap(&err, "tree.Branches(%s)", conversationID)
	limit, before, err := p.timed("branches", s.tenant, conversationID.String())
	if err != nil {
		return Page[Message]{}, err
	}
	if _, err := s.Conversation(ctx, conversationID); err != nil {
		return Page[Message]{}, err
	}
	rows, err := s.q.ListBranches(ctx, db.ListBranchesParams{
		ConversationID: toUUID(conversationID), BeforeCreatedAt: before.time(), BeforeID: toUUID(before.ID),
		RowLimit: int32(limit), ByteLimit: MaxPageBytes,
	})
	if err != nil {
		return Page[Message]{}, err
	}
	out, more := make([]Message, len(rows)), false
	for i, row := range rows {
		out[i], more = fromMessage(row.Node, row.SiblingCount, row.Annotation), row.More
	}
	return paged(out, more, before, func(m Message) Position { return timed(m.CreatedAt, m.ID) }), nil
}

// NewestLeaf returns the newest leaf at or below a message. This is the branch to
// open when a reader switches to the message. It walks the nodes below the
// message, at about 200,000 a second.
func (s *Store) NewestLeaf(ctx context.Context, conversationID, id uuid.UUID) (_ Message, err error) {
	defer db.Wrap(&err, "tree.NewestLeaf(%s, %s)", conversationID, id)
	if _, err := s.Message(ctx, conversationID, id); err != nil {
		return Message{}, err
	}
	at := Place{conversationID, id}
	leaves, err := s.Index().newestLeaves(ctx, []Place{at})
	if err != nil {
		return Message{}, err
	}
	return s.Message(ctx, conversationID, leaves[at])
}

// Transcript reads all messages of a branch, a page at a time from the head back.
// Within a page the oldest message stands first, so that a reader puts each next
// page in front of the pages before. A page costs the same anywhere on the path. It
// ends at about 4 MiB, also before its limit of messages.
//
// A headID of uuid.Nil is the active head. A cursor belongs to the branch whose
// first page gave it. With a headID of uuid.Nil the cursor still means that
// branch, so that a reader of the active branch can go on when another branch has
// become active.
func (s *Store) Transcript(ctx context.Context, conversationID, headID uuid.UUID, p Paging) (_ Page[Message], err error) {
	defer db.Wrap(&err, "tree.Transcript(%s, head %s)", conversationID, headID)
	limit, from, err := p.From("transcript", s.tenant, conversationID.String())
	if err != nil {
		return Page[Message]{}, err
	}
	branch, start := int64(digest(headID.String())), headID
	if p.Cursor != "" {
		if headID != uuid.Nil && from.Key != branch {
			return Page[Message]{}, errCursor
		}
		branch, start = from.Key, from.ID
	}
	rows, err := s.q.GetTranscript(ctx, db.GetTranscriptParams{
		ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader, HeadID: toUUID(start), RowLimit: int32(limit), ByteLimit: MaxPageBytes,
	})
	if err != nil {
		return Page[Message]{}, err
	}
	if len(rows) == 0 {
		return Page[Message]{}, s.noBranch(ctx, conversationID, headID, p)
	}
	if start == uuid.Nil {
		branch = int64(digest(uuid.UUID(rows[0].ID.Bytes).String()))
	}
	page := Page[Message]{Data: make([]Message, len(rows))}
	for i, row := range rows {
		page.Data[i] = fromTranscript(conversationID, row)
	}
	slices.Reverse(page.Data)
	if err := s.FindSources(ctx, conversationID, page.Data); err != nil {
		return Page[Message]{}, err
	}
	if oldest := page.Data[0]; oldest.ParentID != uuid.Nil {
		page.Next = from.Cursor(branch, oldest.ParentID)
	}
	return page, nil
}

func fromTranscript(conversationID uuid.UUID, row db.GetTranscriptRow) Message {
	return fromMessage(db.Node{
		ConversationID: toUUID(conversationID), ID: row.ID, ParentID: row.ParentID, Role: row.Role, SiblingIndex: row.SiblingIndex,
		Depth: row.Depth, Tokens: row.Tokens, PathTokens: row.PathTokens, Pinned: row.Pinned, CreatedAt: row.CreatedAt,
		Body: row.Body, Metadata: row.Metadata, Reasoning: row.Reasoning, Origin: row.Origin,
	}, row.SiblingCount, row.Annotation)
}

// noBranch tells why a branch has no row.
func (s *Store) noBranch(ctx context.Context, conversationID, headID uuid.UUID, p Paging) error {
	_, err := s.Conversation(ctx, conversationID)
	switch {
	case err != nil:
		return err
	case p.Cursor != "":
		return errCursor
	case headID == uuid.Nil:
		return errNoActiveHead
	}
	return errMessageNotFound
}

// Tree streams every node of a conversation without its body: a parent before its
// children, and summaries among them. preview is how many characters of each
// message's text a node has; with 0, bodies are not read. The first error ends
// the sequence. Memory doesn't grow with the tree.
//
// The sequence holds a connection until it ends. Over a transaction, nothing else
// may run until then.
func (s *Store) Tree(ctx context.Context, conversationID uuid.UUID, preview int) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		if err := s.stream(ctx, conversationID, preview, yield); err != nil {
			db.Wrap(&err, "tree.Tree(%s)", conversationID)
			yield(Node{}, err)
		}
	}
}

func (s *Store) stream(ctx context.Context, conversationID uuid.UUID, preview int, yield func(Node, error) bool) error {
	if _, err := s.Conversation(ctx, conversationID); err != nil {
		return err
	}
	params := db.StreamTreeParams{ConversationID: toUUID(conversationID), Preview: int32(preview)}
	for row, err := range db.Stream(ctx, s.h, (*db.Queries).StreamTree, params) {
		if err != nil {
			return err
		}
		if !yield(fromSkeleton(row), nil) {
			return nil
		}
	}
	return nil
}

func fromSkeleton(row db.StreamTreeRow) Node {
	n := Node{
		ID: uuid.UUID(row.ID.Bytes), ParentID: uuid.UUID(row.ParentID.Bytes), Kind: Kind(row.Kind), Role: Role(row.Role),
		Depth: int(row.Depth), Tokens: int(row.Tokens), Pinned: row.Pinned, Index: int(row.SiblingIndex.Int32),
		CreatedAt: row.CreatedAt.UTC(), Preview: row.Preview, Annotation: fromAnnotation(row.Annotation),
	}
	if n.Kind == KindSummary {
		r := fromRange(row.LastSummarizedID, row.PriorSummaryID, row.KeptIds, row.Model, row.Origin)
		n.Summary = &r
	} else {
		n.Graft = fromGraft(row.Origin)
	}
	return n
}
