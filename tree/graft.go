package tree

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// A Graft says which other branch a message's text comes from. The message stands on
// its own branch like any other, and stays when the other branch is pruned.
type Graft struct {
	FromHeadID   uuid.UUID // the other branch
	AncestorID   uuid.UUID // the last message that both branches had; uuid.Nil for none
	Messages     int       // of the other branch after that
	Include      Include
	Model        string // that wrote the text; "" where the caller gave it, or messages were copied
	Instructions string // for the model; "" for none

	// Gone says that the other branch was pruned since. FindSources sets it, and so do
	// Message and Transcript.
	Gone bool
}

// Valid reports whether a graft can have been made: a file may bring anything.
func (g Graft) Valid() bool {
	const mostText = 4000 // bytes of what a caller or a model's name says
	return g.FromHeadID != uuid.Nil && g.Messages > 0 && (g.Include == IncludeSummary || g.Include == IncludeMessages) &&
		len(g.Model) <= mostText && len(g.Instructions) <= mostText
}

// Include says in which form a Graft has the messages of the other branch.
type Include string

const (
	IncludeSummary  Include = "summary"
	IncludeMessages Include = "messages" // word for word
)

// graftMembers are a Graft as it is stored, and in an answer.
type graftMembers struct {
	FromHeadID   uuid.UUID  `json:"from_head_id"`
	AncestorID   *uuid.UUID `json:"ancestor_id"`
	Messages     int        `json:"messages"`
	Include      Include    `json:"include"`
	Model        string     `json:"model"`
	Instructions string     `json:"instructions"`
	SourceGone   bool       `json:"source_gone,omitempty"`
}

// MarshalJSON returns {from_head_id, ancestor_id, messages, include, model,
// instructions, source_gone where that is true}.
func (g Graft) MarshalJSON() ([]byte, error) {
	m := graftMembers{g.FromHeadID, nil, g.Messages, g.Include, g.Model, g.Instructions, g.Gone}
	if g.AncestorID != uuid.Nil {
		m.AncestorID = &g.AncestorID
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads what MarshalJSON returns, except source_gone.
func (g *Graft) UnmarshalJSON(raw []byte) error {
	var m graftMembers
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	*g = Graft{FromHeadID: m.FromHeadID, Messages: m.Messages, Include: m.Include, Model: m.Model, Instructions: m.Instructions}
	if m.AncestorID != nil {
		g.AncestorID = *m.AncestorID
	}
	return nil
}

// column is the graft as it is stored.
func (g *Graft) column() json.RawMessage {
	if g == nil {
		return nil
	}
	stored := *g
	stored.Gone = false
	raw, _ := json.Marshal(stored) // ids, numbers and strings always marshal
	return raw
}

// fromGraft reads the column origin of a message.
func fromGraft(column json.RawMessage) *Graft {
	if column == nil {
		return nil
	}
	g := new(Graft)
	_ = json.Unmarshal(column, g) // which column wrote
	return g
}

func (g *Graft) appendMember(dst []byte) []byte {
	if g == nil {
		return dst
	}
	raw, _ := json.Marshal(g) // as in column
	return append(append(dst, `,"grafted":`...), raw...)
}

// A Parting is what one branch said since another one parted from it.
type Parting struct {
	HeadID     uuid.UUID // of the branch
	AncestorID uuid.UUID // the last message that both have; uuid.Nil for none
	Messages   []Message // oldest first, with ids, roles and tokens alone
	version    Version   // of the head, from before the messages were read
}

// SinceParted returns what the branch of fromHeadID said since it and the branch of
// headID parted. It reads nothing above. A branch that says nothing of its own is a
// fault.Invalid.
func (s *Store) SinceParted(ctx context.Context, conversationID, headID, fromHeadID uuid.UUID) (p Parting, err error) {
	defer db.Wrap(&err, "tree.SinceParted(%s, %s from %s)", conversationID, headID, fromHeadID)
	if _, err := s.Message(ctx, conversationID, headID); err != nil {
		return p, err
	}
	p.HeadID = fromHeadID
	if p.version, err = s.Version(ctx, conversationID, fromHeadID); err != nil {
		return p, missingIn(err, "from_head_id")
	}
	head, err := s.Message(ctx, conversationID, fromHeadID)
	if err != nil {
		return p, missingIn(err, "from_head_id")
	}
	own, above := head.Depth+1, int64(0) // messages of its own, and the tokens above them
	common, err := s.q.GetParting(ctx, db.GetPartingParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader, LeftID: toUUID(headID), RightID: toUUID(fromHeadID)})
	switch {
	case err == nil:
		p.AncestorID, above = uuid.UUID(common.ID.Bytes), common.PathTokens
		own -= int(common.Depth) + 1
	case !isNoRows(err):
		return p, err
	}
	if own == 0 {
		return p, fault.New(fault.Invalid, "nothing_to_graft", "from_head_id",
			"All messages of this branch are on the other one already. Name the head of a branch that has messages of its own.")
	}
	path, err := s.q.ListPathHashes(ctx, db.ListPathHashesParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader, HeadID: toUUID(fromHeadID), RowLimit: int32(own)})
	if err == nil && len(path) < own {
		err = missingIn(errMessageNotFound, "from_head_id") // pruned meanwhile
	}
	for _, row := range slices.Backward(path) {
		p.Messages = append(p.Messages, Message{ConversationID: conversationID, ID: uuid.UUID(row.ID.Bytes), Role: Role(row.Role), Tokens: int(row.PathTokens - above)})
		above = row.PathTokens
	}
	return p, err
}

// missingIn names the field in which the id of a message that isn't there stood.
func missingIn(err error, field string) error {
	if errors.Is(err, fault.NotFound) && fault.Of(err).Code == errMessageNotFound.Code {
		return fault.At(err, field)
	}
	return err
}

// AppendGraft appends a message that has a Graft to the branch of headID. Since from
// was read, its messages may have been pruned: then it is a fault.Conflict of the code
// changed_meanwhile, and nothing is stored, so that no text comes back. A branch that
// ends in tool calls without their results is a fault.Invalid.
func (s *Store) AppendGraft(ctx context.Context, conversationID, headID uuid.UUID, m NewMessage, from Parting) (a Appended, err error) {
	defer db.Wrap(&err, "tree.AppendGraft(%s, head %s)", conversationID, headID)
	err = s.inTurn(ctx, conversationID, func(s *Store) error {
		if _, err := s.lock(ctx, conversationID); err != nil {
			return err
		}
		version, err := s.Version(ctx, conversationID, from.HeadID)
		if err != nil && !errors.Is(err, errMessageNotFound) {
			return err
		}
		if err != nil || version != from.version {
			return fault.New(fault.Conflict, "changed_meanwhile", "from_head_id", "The messages of this branch were deleted or changed meanwhile. Read the tree and send this again.")
		}
		if err := s.CheckClosed(ctx, conversationID, headID); err != nil {
			return err
		}
		chain, err := s.AppendChain(ctx, conversationID, headID, []NewMessage{m})
		if err == nil {
			a = Appended{chain.Messages[0], chain.Created}
		}
		return alone(err)
	})
	return a, err
}

// CheckClosed returns a fault.Invalid if a branch ends in tool calls that have no
// results yet.
func (s *Store) CheckClosed(ctx context.Context, conversationID, headID uuid.UUID) error {
	open, err := s.Histories().OpenCalls(ctx, conversationID, headID)
	if err == nil && len(open) > 0 {
		err = fault.New(fault.Invalid, "open_tool_calls", "head_id", "The branch ends in tool calls that have no result yet, such as %q. Append their results first.", fault.Clip(open[0]))
	}
	return err
}

// FindSources sets Gone of the messages' grafts. Without any it costs nothing.
func (s *Store) FindSources(ctx context.Context, conversationID uuid.UUID, ms []Message) error {
	var sources []uuid.UUID
	for _, m := range ms {
		if m.Graft != nil {
			sources = append(sources, m.Graft.FromHeadID)
		}
	}
	if len(sources) == 0 {
		return nil
	}
	there, err := s.q.ListThere(ctx, db.ListThereParams{ConversationID: toUUID(conversationID), Ids: toUUIDs(sources)})
	for _, m := range ms {
		if m.Graft != nil {
			m.Graft.Gone = !slices.Contains(there, toUUID(m.Graft.FromHeadID))
		}
	}
	return err
}

// graftedFrom is a message's graft in a conversation into which it was copied.
func graftedFrom(column json.RawMessage, copied func(uuid.UUID) uuid.UUID) json.RawMessage {
	g := fromGraft(column)
	if g == nil {
		return nil
	}
	g.FromHeadID, g.AncestorID = copied(g.FromHeadID), copied(g.AncestorID)
	return g.column()
}
