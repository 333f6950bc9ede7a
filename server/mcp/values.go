package mcp

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A Message is a message in the form that a model reads.
type Message struct {
	ID         string     `json:"id" jsonschema:"CONVERSATION/MESSAGE, as fetch takes it"`
	MessageID  string     `json:"message_id"`
	ParentID   string     `json:"parent_id,omitempty" jsonschema:"the message before it; none for a first one"`
	Role       string     `json:"role"`
	Name       string     `json:"name,omitempty"`
	Text       string     `json:"text" jsonschema:"what it says; a part that is no text stands as its type in brackets"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty" jsonschema:"the call that it answers"`
	Depth      int        `json:"depth" jsonschema:"messages above it"`
	Tokens     int        `json:"tokens"`
	CutOff     bool       `json:"cut_off,omitempty" jsonschema:"there was no room for all of its text; fetch gives it"`
	CreatedAt  string     `json:"created_at"`
	Grafted    *Grafted   `json:"grafted,omitempty" jsonschema:"where the text comes from; none where it was said here"`
}

// A Grafted tells from which other branch a message was brought.
type Grafted struct {
	FromHeadID string `json:"from_head_id" jsonschema:"head of the other branch"`
	AncestorID string `json:"ancestor_id,omitempty" jsonschema:"the last message that both branches had"`
	Messages   int    `json:"messages" jsonschema:"how many the other branch had after that"`
	Include    string `json:"include" jsonschema:"summary or messages"`
	SourceGone bool   `json:"source_gone,omitempty" jsonschema:"the other branch was deleted since"`
}

func graftedOf(g *tree.Graft) *Grafted {
	if g == nil {
		return nil
	}
	out := &Grafted{FromHeadID: g.FromHeadID.String(), Messages: g.Messages, Include: string(g.Include), SourceGone: g.Gone}
	if g.AncestorID != uuid.Nil {
		out.AncestorID = g.AncestorID.String()
	}
	return out
}

// A ToolCall is a call in an assistant's message.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func messageOf(m tree.Message) Message {
	out := Message{
		ID: idOf(m), MessageID: m.ID.String(), Role: string(m.Role), Depth: m.Depth, Tokens: m.Tokens, CreatedAt: timeOf(m.CreatedAt), Grafted: graftedOf(m.Graft),
	}
	if m.ParentID != uuid.Nil {
		out.ParentID = m.ParentID.String()
	}
	if m.Body == nil { // of a hit for which there was no room
		out.CutOff = true
		return out
	}
	out.say(chat.Read(m.Body))
	return out
}

// say fills in what a message says.
func (out *Message) say(m *chat.Message) {
	var said []string
	for _, p := range m.Parts {
		if p.IsText() || p.Type == "" {
			said = append(said, p.Text)
		} else {
			said = append(said, "["+p.Type+"]")
		}
	}
	if m.Refusal != nil {
		said = append(said, *m.Refusal)
	}
	out.Text = strings.Join(said, "\n")
	if m.Name != nil {
		out.Name = *m.Name
	}
	for _, call := range m.Calls {
		out.ToolCalls = append(out.ToolCalls, ToolCall{call.ID, call.Name, call.Arguments})
	}
	out.ToolCallID = m.Answers()
}

func messagesOf(all []tree.Message) []Message {
	out := make([]Message, len(all))
	for i, m := range all {
		out[i] = messageOf(m)
	}
	return out
}

// idOf names a message among all of the tenant's.
func idOf(m tree.Message) string { return m.ConversationID.String() + "/" + m.ID.String() }

func timeOf(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func parseID(text, field string) (uuid.UUID, error) {
	const form = len("00000000-0000-0000-0000-000000000000")
	id, err := uuid.Parse(text)
	if err != nil || len(text) != form || id == uuid.Nil {
		return uuid.Nil, fault.New(fault.Invalid, "invalid_id", field, "%q is no id. Ids are UUIDs such as 01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa.", fault.Clip(text))
	}
	return id, nil
}

// parseOptional reads an id that may be left out.
func parseOptional(text, field string) (uuid.UUID, error) {
	if text == "" {
		return uuid.Nil, nil
	}
	return parseID(text, field)
}

// parseHead reads a head's id. uuid.Nil stands for the active one, which is the
// one where none is given.
func parseHead(text string) (uuid.UUID, error) {
	if text == "active" {
		return uuid.Nil, nil
	}
	return parseOptional(text, "head_id")
}

// A Branch names a branch in a tool's arguments.
type Branch struct {
	ConversationID string `json:"conversation_id" jsonschema:"id of the conversation"`
	HeadID         string `json:"head_id,omitempty" jsonschema:"id of any message, which the branch ends in; active, which is the default, is the branch that was used last"`
}

func (b Branch) parse() (conversationID, headID uuid.UUID, err error) {
	if conversationID, err = parseID(b.ConversationID, "conversation_id"); err == nil {
		headID, err = parseHead(b.HeadID)
	}
	return conversationID, headID, err
}

// Listing asks for a page of a list.
type Listing struct {
	Limit  int    `json:"limit,omitempty" jsonschema:"rows at most, 1 to 100; 20 where it is left out"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before, as it came"`
}

func (l Listing) paging() (tree.Paging, error) {
	switch {
	case l.Limit == 0:
		l.Limit = 20
	case l.Limit < 0 || l.Limit > 100:
		return tree.Paging{}, fault.New(fault.Invalid, "invalid_limit", "limit", "Ask for 1 to 100 rows.")
	}
	return tree.Paging{Limit: l.Limit, Cursor: l.Cursor}, nil
}
