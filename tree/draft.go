package tree

import (
	"bytes"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
)

// A draft is a checked message, ready to be placed.
type draft struct {
	NewMessage
	*chat.Message
	tokenCount  int
	search      pgtype.Text
	attachments []chat.Attachment // that the parts name
}

func (s *Store) draft(m NewMessage) (*draft, error) {
	said, err := parseBody(m.Body)
	if err != nil {
		return nil, err
	}
	if err := checkReasoning(m.Reasoning, said); err != nil {
		return nil, err
	}
	if m.Metadata, err = checkExtra(m.Metadata, "metadata"); err != nil {
		return nil, err
	}
	if m.ID == uuid.Nil {
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
	text, ok := searchText(said)
	return &draft{
		NewMessage: m, Message: said, tokenCount: costOf(said, s.counter, nil), search: pgtype.Text{String: text, Valid: ok}, attachments: attachments,
	}, nil
}

// same tells whether the stored node says what the draft says. Times are left
// out: a retry is made later.
func (d *draft) same(n db.Node, parentID uuid.UUID) bool {
	return n.Kind == string(KindMessage) && uuid.UUID(n.ParentID.Bytes) == parentID && n.Pinned == d.Pinned && n.Reasoning.String == d.NewMessage.Reasoning &&
		sameJSON(n.Body, d.Body) && sameJSON(n.Metadata, d.Metadata)
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// row places the draft under p and gives its own place.
func (d *draft) row(conversationID uuid.UUID, p place, index int32) (db.CopyNodesParams, place) {
	own := p.child(d.ID, d.Role, d.tokenCount)
	row := db.CopyNodesParams{
		ConversationID: toUUID(conversationID), ID: toUUID(d.ID), ParentID: toUUID(p.id),
		Kind: string(KindMessage), Role: string(d.Role), SiblingIndex: pgtype.Int4{Int32: index, Valid: true},
		Depth: int32(own.depth), Tokens: int32(d.tokenCount), PathTokens: own.pathTokens, PrefixID: toUUID(own.prefixID),
		Pinned: d.Pinned, CreatedAt: d.CreatedAt, Body: d.Body, SearchText: d.search, Metadata: d.Metadata, Reasoning: textOrNull(d.NewMessage.Reasoning),
	}
	if p.hash != nil {
		hash := p.hash.Child(d.Message)
		own.hash, row.PathHash = &hash, hash[:]
	}
	return row, own
}

// A place is what a child inherits from its parent: all that AppendMessage
// reads of the parent's row.
type place struct {
	id         uuid.UUID
	depth      int
	pathTokens int64
	prefixID   uuid.UUID
	hash       *chat.PathHash // nil for none
}

// root is above every root.
var root = place{depth: -1}

func placeOf(n db.Node) place {
	p := place{id: uuid.UUID(n.ID.Bytes), depth: int(n.Depth), pathTokens: n.PathTokens, prefixID: uuid.UUID(n.PrefixID.Bytes)}
	if n.PathHash != nil {
		hash := chat.PathHash(n.PathHash)
		p.hash = &hash
	}
	return p
}

// child is the place of a new message under p. A system or developer message
// extends the prefix while nothing else was said.
func (p place) child(id uuid.UUID, role Role, tokens int) place {
	c := place{id: id, depth: p.depth + 1, pathTokens: p.pathTokens + int64(tokens), prefixID: p.prefixID}
	if p.prefixID == p.id && (role == RoleSystem || role == RoleDeveloper) {
		c.prefixID = id
	}
	return c
}
