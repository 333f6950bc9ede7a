package tree

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// Append stores a message under parentID, or as a new root where parentID is
// uuid.Nil. To edit a message, append to its parent. To regenerate an answer,
// append to the user message again.
//
// If a message has the id already, Append returns the stored message where parent
// and content are the same, and a fault.Conflict where they differ. An absent parent, and a summary as the parent, are a fault.NotFound. What
// isn't a chat-completions message is a fault.Invalid or a fault.TooLarge.
//
// An append takes one round trip and one commit, in a tree of any size, and on a
// distributed database four round trips. A tool message takes two round trips more,
// which find the call that it answers. Only what begins a reply, stands behind
// another message, or answers a call at the active head takes more.
func (s *Store) Append(ctx context.Context, conversationID, parentID uuid.UUID, m NewMessage, opts ...AppendOption) (_ Appended, err error) {
	defer db.Wrap(&err, "tree.Append(%s, parent %s)", conversationID, parentID)
	var o appendOptions
	for _, opt := range opts {
		opt(&o)
	}
	d, err := s.draft(ctx, m)
	if err != nil {
		return Appended{}, err
	}
	chained, err := s.needsChain(ctx, o, d)
	if err != nil {
		return Appended{}, err
	}
	if chained {
		chain, err := s.appendDrafts(ctx, conversationID, parentID, []*draft{d}, o)
		if err != nil {
			return Appended{}, alone(err)
		}
		return Appended{chain.Messages[0], chain.Created}, nil
	}
	if d.Message.Role == RoleTool {
		if stored, found, err := s.replayed(ctx, conversationID, parentID, d); found || err != nil {
			return Appended{Message: stored}, err
		}
		calls, err := s.callsAt(ctx, conversationID, parentID)
		if err != nil {
			return Appended{}, err
		}
		if err := calls.answer(d.Message); err != nil {
			return Appended{}, err
		}
	}
	form := d.Message.Form()
	params := db.AppendMessageParams{
		ConversationID: toUUID(conversationID), ParentID: toUUID(parentID), AtHead: o.atHead, IfHead: o.ifHead, TenantID: s.tenant, Reader: s.reader,
		ID: toUUID(d.ID), Role: string(d.Message.Role), Tokens: int32(d.tokenCount), Pinned: d.Pinned,
		CreatedAt: d.CreatedAt, Body: d.Message.Raw, Metadata: d.Metadata, Unhashed: o.auxiliary, Reasoning: textOrNull(d.Reasoning),
		MoveHead: !o.keepHead, CompareHead: o.compare, ExpectedHead: toUUID(o.from),
		MostMessages: int32(s.limits.MessagesPerConversation), Form: form[:],
	}
	if o.hashed && (parentID == uuid.Nil || o.atHead) {
		hash := chat.PathHash{}.ChildOf(form)
		params.RootHash = hash[:]
	}
	stored, err := s.insert(ctx, params, o)
	if isNoRows(err) {
		stored, err = s.whyNotAppended(ctx, conversationID, parentID, d, o)
		return Appended{Message: stored}, err
	}
	return Appended{stored, err == nil}, err
}

// needsChain tells whether one statement can't append a message so.
func (s *Store) needsChain(ctx context.Context, o appendOptions, d *draft) (bool, error) {
	switch {
	case o.behind != uuid.Nil, len(d.attachments) > 0, d.Graft != nil:
		return true, nil
	case o.begins != nil && (o.begins.again || o.atHead || o.ifHead || o.auxiliary || !d.fresh):
		return true, nil
	case o.atHead && d.Message.Role == RoleTool:
		return true, nil // the call that it answers is found below a known parent
	case o.atHead || o.ifHead || o.auxiliary:
		return s.engine.isDistributed(ctx, s.h)
	}
	return false, nil
}

// alone names the only message of a chain as Append names it.
func alone(err error) error {
	if !fault.Refused(err) {
		return err
	}
	e := *fault.Of(err)
	e.Field = strings.TrimPrefix(strings.TrimPrefix(e.Field, "messages[0]"), ".")
	return &e
}

// insert runs AppendMessage, and in its transaction begins or ends a reply.
func (s *Store) insert(ctx context.Context, params db.AppendMessageParams, o appendOptions) (m Message, err error) {
	distributed, err := s.engine.isDistributed(ctx, s.h)
	if err != nil {
		return Message{}, err
	}
	store := db.AppendInTurn
	if distributed {
		store = s.appendInSteps
	}
	var then []db.Statement
	if o.begins != nil {
		then = append(then, o.begins.statement(ctx, s, params.ID))
	}
	add := func(h db.Handle) error {
		node, err := store(ctx, h, params, then...)
		m = fromMessage(node, node.SiblingIndex.Int32, nil) // the newest sibling's index is their count
		return err
	}
	conversationID := uuid.UUID(params.ConversationID.Bytes)
	leave, err := s.turn(ctx, conversationID)
	if err != nil {
		return Message{}, err
	}
	defer leave()
	if o.ends == nil {
		err = add(s.h)
	} else {
		err = pgx.BeginFunc(ctx, s.h, func(tx pgx.Tx) error {
			if err := add(tx); err != nil {
				return err
			}
			return o.ends.run(ctx, s.over(tx), conversationID, m.ID)
		})
	}
	if err == nil {
		s.count(1, len(params.Body))
		s.committing(conversationID)
	}
	return m, err
}

// whyNotAppended finds what kept AppendMessage from inserting. What it reads
// may have changed since, so the last answer is to try again.
func (s *Store) whyNotAppended(ctx context.Context, conversationID, parentID uuid.UUID, d *draft, o appendOptions) (Message, error) {
	if o.atHead { // wherever it stands, as it moved the head itself
		if stored, err := s.node(ctx, conversationID, d.ID); err == nil {
			parentID = uuid.UUID(stored.Node.ParentID.Bytes)
		}
	}
	if stored, found, err := s.replayed(ctx, conversationID, parentID, d); found || err != nil {
		return stored, err
	}
	if o.atHead {
		parentID = uuid.Nil
	}
	c, err := s.checkParent(ctx, conversationID, parentID)
	if err == nil && o.ifHead && c.HeadID != o.from {
		err = errHeadMoved
	}
	if err == nil {
		err = s.RoomFor(c, 1)
	}
	if err != nil {
		return Message{}, err
	}
	return Message{}, fault.New(fault.Conflict, "changed_meanwhile", "",
		"The conversation changed while this was stored. Send it again.")
}

// replayed looks whether the draft's id is there already: found with the
// stored message where it says the same, or with an error where it doesn't.
func (s *Store) replayed(ctx context.Context, conversationID, parentID uuid.UUID, d *draft) (_ Message, found bool, err error) {
	row, err := s.q.GetNode(ctx, db.GetNodeParams{ConversationID: toUUID(conversationID), ID: toUUID(d.ID), TenantID: s.tenant, Reader: s.reader})
	if isNoRows(err) {
		return Message{}, false, nil
	}
	if err != nil {
		return Message{}, false, err
	}
	if !d.same(row.Node, parentID) {
		return Message{}, true, d.taken()
	}
	return fromMessage(row.Node, row.SiblingCount, row.Annotation), true, nil
}

// taken tells that another message has the draft's id.
func (d *draft) taken() error {
	return conflict("id", "The id %s is taken by another message. Send a new id, or none.", d.ID)
}

// checkParent reads the conversation. It tells an absent one from an absent
// parent, and a summary from both.
func (s *Store) checkParent(ctx context.Context, conversationID, parentID uuid.UUID) (Conversation, error) {
	c, err := s.Conversation(ctx, conversationID)
	if err != nil || parentID == uuid.Nil {
		return c, err
	}
	row, err := s.q.GetNode(ctx, db.GetNodeParams{ConversationID: toUUID(conversationID), ID: toUUID(parentID), TenantID: s.tenant, Reader: s.reader})
	if isNoRows(err) {
		return c, fault.New(fault.NotFound, "parent_not_found", "parent_id",
			"The conversation has no message with this id. Append under one that it has, or send null to start a new root.")
	}
	if err == nil && row.Node.Kind == string(KindSummary) {
		return c, fault.New(fault.Invalid, "parent_is_summary", "parent_id",
			"A summary has no children. Append under the message that it is anchored at.")
	}
	return c, err
}

var errHeadMoved = fault.New(fault.Conflict, "changed_meanwhile", "", "The conversation went on meanwhile, or another branch became active. Read it and send this again.")

// AppendChain stores messages as one path: the first under parentID, and each
// other message under the one before it. It stores all of them or none. It takes
// up to MaxChain messages, moves the active head to the last, and is idempotent
// like Append where every message has an id.
//
// It takes a fixed number of round trips, and one commit.
func (s *Store) AppendChain(ctx context.Context, conversationID, parentID uuid.UUID, ms []NewMessage, opts ...AppendOption) (_ Chain, err error) {
	defer db.Wrap(&err, "tree.AppendChain(%s, parent %s, %d messages)", conversationID, parentID, len(ms))
	var o appendOptions
	for _, opt := range opts {
		opt(&o)
	}
	drafts, err := s.drafts(ctx, ms)
	if err != nil {
		return Chain{}, err
	}
	return s.appendDrafts(ctx, conversationID, parentID, drafts, o)
}

func (s *Store) appendDrafts(ctx context.Context, conversationID, parentID uuid.UUID, drafts []*draft, o appendOptions) (chain Chain, err error) {
	if err := s.weigh(ctx, drafts); err != nil {
		return Chain{}, err
	}
	err = s.inTurn(ctx, conversationID, func(s *Store) error {
		c, err := s.lock(ctx, conversationID)
		if err != nil {
			return err
		}
		if o.atHead {
			parentID = uuid.UUID(c.HeadID.Bytes)
		}
		if chain.Messages, err = s.replayedChain(ctx, conversationID, parentID, drafts, o.atHead); err != nil {
			return err
		}
		if n := len(chain.Messages); n > 0 {
			return o.begins.run(ctx, s, chain.Messages[n-1].ID)
		}
		if o.ifHead && uuid.UUID(c.HeadID.Bytes) != o.from {
			return errHeadMoved
		}
		if err := s.roomFor(int(c.MessageCount), len(drafts)); err != nil {
			return err
		}
		chain.Messages, err = s.insertChain(ctx, conversationID, parentID, drafts, o.moves(uuid.UUID(c.HeadID.Bytes)), o)
		if err != nil {
			return err
		}
		chain.Created = true
		last := chain.Messages[len(chain.Messages)-1]
		if err := o.begins.run(ctx, s, last.ID); err != nil {
			return err
		}
		return o.ends.run(ctx, s, conversationID, last.ID)
	})
	if err != nil {
		return Chain{}, err
	}
	return chain, nil
}

// replayedChain gives the stored chain where every id is there and says the
// same, and nil where no id is there. Anything else is a conflict. With atHead
// the chain may begin anywhere, because the active head has moved since.
func (s *Store) replayedChain(ctx context.Context, conversationID, parentID uuid.UUID, drafts []*draft, atHead bool) ([]Message, error) {
	ids := make([]uuid.UUID, len(drafts))
	for i, d := range drafts {
		ids[i] = d.ID
	}
	rows, err := s.q.ListMessages(ctx, db.ListMessagesParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader, Ids: toUUIDs(ids)})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	out := make([]Message, len(rows)) // in the order of the drafts, perhaps with gaps
	for i, row := range rows {
		d := drafts[i]
		if i == 0 && atHead {
			parentID = uuid.UUID(row.Node.ParentID.Bytes)
		}
		switch {
		case uuid.UUID(row.Node.ID.Bytes) == d.ID && d.same(row.Node, parentID):
		case uuid.UUID(row.Node.ID.Bytes) == d.ID:
			return nil, fault.At(d.taken(), fmt.Sprintf("messages[%d]", i))
		case i == 0: // a stored message behind a new one
			i = slices.Index(ids, uuid.UUID(row.Node.ID.Bytes))
			return nil, fault.At(drafts[i].taken(), fmt.Sprintf("messages[%d]", i))
		default:
			return nil, missingInChain(i)
		}
		out[i] = fromMessage(row.Node, row.SiblingCount, row.Annotation)
		parentID = d.ID
	}
	if len(rows) < len(drafts) {
		return nil, missingInChain(len(rows))
	}
	return out, nil
}

// inChain names the message of a chain that an error is about.
func inChain(err error, drafts []*draft, i int) error {
	if len(drafts) == 1 {
		return err
	}
	return fault.At(err, fmt.Sprintf("messages[%d]", i))
}

func missingInChain(i int) error {
	return conflict(fmt.Sprintf("messages[%d].id", i), "The messages before this one are stored, and this one isn't. Send those that are missing as a chain of their own.")
}

func (s *Store) insertChain(ctx context.Context, conversationID, parentID uuid.UUID, drafts []*draft, moveHead bool, o appendOptions) ([]Message, error) {
	calls, err := s.callsAt(ctx, conversationID, parentID)
	if err != nil {
		return nil, err
	}
	p := root
	if o.hashed {
		p.hash = &chat.PathHash{}
	}
	if parentID != uuid.Nil {
		row, err := s.q.GetNode(ctx, db.GetNodeParams{ConversationID: toUUID(conversationID), ID: toUUID(parentID), TenantID: s.tenant, Reader: s.reader})
		if err != nil {
			return nil, err
		}
		p = parentStateOf(row.Node)
	}
	if o.behind != uuid.Nil {
		row, err := s.q.GetNode(ctx, db.GetNodeParams{ConversationID: toUUID(conversationID), ID: toUUID(o.behind), TenantID: s.tenant, Reader: s.reader})
		if err != nil {
			return nil, err
		}
		p.hash = parentStateOf(row.Node).hash
	}
	if o.auxiliary {
		p.hash = nil
	}
	count, err := s.q.CountSiblings(ctx, db.CountSiblingsParams{ConversationID: toUUID(conversationID), ParentID: toUUID(parentID)})
	if err != nil {
		return nil, err
	}
	index := count + 1
	rows := make([]db.CopyNodesParams, len(drafts))
	out := make([]Message, len(drafts))
	for i, d := range drafts {
		if err := calls.answer(d.Message); err != nil {
			return nil, fault.At(err, fmt.Sprintf("messages[%d]", i))
		}
		rows[i], p = d.row(conversationID, p, index)
		out[i] = fromMessage(db.Node(rows[i]), index, nil)
		index = 1
	}
	if err := s.copyRows(ctx, rows); err != nil {
		return nil, err
	}
	if err := s.use(ctx, conversationID, drafts); err != nil {
		return nil, err
	}
	last := drafts[len(drafts)-1]
	touch := db.TouchConversationParams{ID: toUUID(conversationID), UpdatedAt: last.CreatedAt, AddedMessages: int32(len(drafts))}
	if moveHead {
		touch.HeadID = toUUID(last.ID)
	}
	if err := s.q.TouchConversation(ctx, touch); err != nil {
		return nil, err
	}
	return out, s.note(ctx, Change{ConversationID: conversationID, Kind: MessagesAppended, MessageID: last.ID, ParentID: parentID, Messages: len(drafts)})
}
