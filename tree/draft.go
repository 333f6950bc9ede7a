package tree

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// A draft is a checked message, ready to be placed.
type draft struct {
	NewMessage
	tokenCount  int
	attachments []chat.Attachment // that the parts name
	fresh       bool              // the id was made here, so that no message can have it
}

// Checked returns messages as Append, or AppendChain where there are several,
// would store them, with their ids and times. Its errors are those that a message
// causes by itself. An append of a checked message does not check and count it
// again. The message must not be changed until then. If messages name attachments,
// it is one query.
func (s *Store) Checked(ctx context.Context, ms []NewMessage) ([]NewMessage, error) {
	drafts, err := s.drafts(ctx, ms)
	if err != nil {
		return nil, err
	}
	if err := s.weigh(ctx, drafts); err != nil {
		return nil, err
	}
	out := make([]NewMessage, len(drafts))
	for i, d := range drafts {
		out[i] = d.NewMessage
		out[i].draft = d
	}
	return out, nil
}

// drafts checks the messages of a chain.
func (s *Store) drafts(ctx context.Context, ms []NewMessage) (drafts []*draft, err error) {
	switch {
	case len(ms) == 0:
		return nil, fault.New(fault.Invalid, "empty_chain", "messages", "The chain is empty. Send one message or more.")
	case len(ms) > MaxChain:
		return nil, fault.New(fault.TooLarge, "chain_too_long", "messages", "The chain has %d messages, and %d is the most. Send the rest under the last one.", len(ms), MaxChain)
	}
	drafts = make([]*draft, len(ms))
	seen := make(map[uuid.UUID]bool, len(ms))
	for i, m := range ms {
		if drafts[i], err = s.draft(ctx, m); err != nil {
			return nil, fault.At(err, fmt.Sprintf("messages[%d]", i))
		}
		if seen[drafts[i].ID] {
			return nil, fault.New(fault.Invalid, "duplicate_id", fmt.Sprintf("messages[%d].id", i), "Two messages of the chain have this id.")
		}
		seen[drafts[i].ID] = true
	}
	return drafts, nil
}

func (s *Store) draft(ctx context.Context, m NewMessage) (*draft, error) {
	if m.draft != nil {
		return m.draft, nil
	}
	said, err := checkMessage(m.Message)
	if err != nil {
		return nil, err
	}
	m.Message = said
	if err := checkReasoning(m.Reasoning, said); err != nil {
		return nil, err
	}
	if m.Metadata, err = checkExtra(m.Metadata, "metadata"); err != nil {
		return nil, err
	}
	fresh := m.ID == uuid.Nil
	if fresh {
		m.ID = newID()
	}
	if m.CreatedAt.IsZero() {
		m.CreatedAt = now()
	}
	m.CreatedAt = stamp(m.CreatedAt)
	attachments := said.Attachments()
	if err := checkAttachments(attachments); err != nil {
		return nil, err
	}
	cost, err := s.cost(ctx, said, nil)
	if err != nil {
		return nil, err
	}
	return &draft{
		NewMessage: m, tokenCount: cost, attachments: attachments, fresh: fresh,
	}, nil
}

// Tokens returns what a checked message costs in a context; 0 of any other.
func (m NewMessage) Tokens() int {
	if m.draft == nil {
		return 0
	}
	return m.draft.tokenCount
}

// same tells whether the stored node of the draft's id says what the draft says.
// Times are left out: a retry is made later. A node whose id derives from the path
// means the same, perhaps in other words.
func (d *draft) same(n db.Node, parentID uuid.UUID) bool {
	if n.Kind != string(KindMessage) || uuid.UUID(n.ParentID.Bytes) != parentID {
		return false
	}
	return d.derived || n.Pinned == d.Pinned && n.Reasoning.String == d.Reasoning && sameJSON(n.Origin, d.Graft.column()) &&
		sameJSON(n.Body, d.Message.Raw) && sameJSON(n.Metadata, d.Metadata)
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// row places the draft under p and gives its own parent state.
func (d *draft) row(conversationID uuid.UUID, p parentState, index int32) (db.CopyNodesParams, parentState) {
	own := p.child(d.ID, d.Message.Role, d.tokenCount)
	row := db.CopyNodesParams{
		ConversationID: toUUID(conversationID), ID: toUUID(d.ID), ParentID: toUUID(p.id),
		Kind: string(KindMessage), Role: string(d.Message.Role), SiblingIndex: pgtype.Int4{Int32: index, Valid: true},
		Depth: int32(own.depth), Tokens: int32(d.tokenCount), PathTokens: own.pathTokens, PrefixID: toUUID(own.prefixID),
		Pinned: d.Pinned, CreatedAt: d.CreatedAt, Body: d.Message.Raw, Metadata: d.Metadata, Reasoning: textOrNull(d.Reasoning), Origin: d.Graft.column(),
	}
	if p.hash != nil {
		hash := p.hash.Child(d.Message)
		own.hash, row.PathHash = &hash, hash[:]
	}
	return row, own
}

// A parentState is what a child inherits from its parent: all that AppendMessage
// reads of the parent's row.
type parentState struct {
	id         uuid.UUID
	depth      int
	pathTokens int64
	prefixID   uuid.UUID
	hash       *chat.PathHash // nil for none
}

// root is above every root.
var root = parentState{depth: -1}

func parentStateOf(n db.Node) parentState {
	p := parentState{id: uuid.UUID(n.ID.Bytes), depth: int(n.Depth), pathTokens: n.PathTokens, prefixID: uuid.UUID(n.PrefixID.Bytes)}
	if n.PathHash != nil {
		hash := chat.PathHash(n.PathHash)
		p.hash = &hash
	}
	return p
}

// child is the parent state of a new message under p. A system or developer message
// extends the prefix while nothing else was said.
func (p parentState) child(id uuid.UUID, role Role, tokens int) parentState {
	c := parentState{id: id, depth: p.depth + 1, pathTokens: p.pathTokens + int64(tokens), prefixID: p.prefixID}
	if p.prefixID == p.id && (role == RoleSystem || role == RoleDeveloper) {
		c.prefixID = id
	}
	return c
}
