package transfer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/tree"
)

// A turn is one message of a program that keeps the text, the reasoning, the
// tool calls and their results of an answer in one list of blocks. As
// chat-completions has it, that is a chain of messages: the assistant's with
// its calls, a tool's for each result, the assistant's again.
//
// The last message of the chain has the turn's id, so that what names the turn
// as its parent or as the active head needs no translation.
type turn struct {
	id, parent string
	role       tree.Role
	createdAt  time.Time
	source     source
	pieces     []*piece
}

// A piece is one message of the chain.
type piece struct {
	role     tree.Role
	parts    []json.RawMessage
	calls    []toolCall
	answers  string
	thinking []string
	failed   bool // of a tool's result
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func newToolCall(id, name string, arguments json.RawMessage) toolCall {
	c := toolCall{ID: id, Type: "function"}
	c.Function.Name = toolName(name)
	c.Function.Arguments = argumentsOf(arguments)
	return c
}

// argumentsOf writes what a tool was called with as the JSON object that
// models write there.
func argumentsOf(raw json.RawMessage) string {
	if text, ok := stringOf(raw); ok {
		raw = json.RawMessage(strings.TrimSpace(text))
		if len(raw) > 0 && (!json.Valid(raw) || raw[0] != '{') {
			raw = encode(map[string]string{"input": text})
		}
	}
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "{}"
	case raw[0] != '{':
		return string(encode(map[string]json.RawMessage{"input": raw}))
	}
	return string(encode(raw))
}

// own is the piece that what the turn's role says goes to: the last, unless
// that is a tool's.
func (t *turn) own() *piece {
	if n := len(t.pieces); n > 0 && t.pieces[n-1].role == t.role {
		return t.pieces[n-1]
	}
	p := &piece{role: t.role}
	t.pieces = append(t.pieces, p)
	return p
}

// text adds text that says something.
func (t *turn) text(s string) {
	if strings.TrimSpace(s) != "" {
		t.part(encode(part{"text", s}))
	}
}

// part adds a content part.
func (t *turn) part(raw json.RawMessage) {
	p := t.own()
	p.parts = append(p.parts, raw)
}

// think adds reasoning, which goes into the metadata: it is no part of what
// was said.
func (t *turn) think(s string) {
	if strings.TrimSpace(s) != "" {
		p := t.own()
		p.thinking = append(p.thinking, s)
	}
}

// call adds a tool call and gives its id.
func (t *turn) call(id, name string, arguments json.RawMessage) string {
	if id == "" {
		id = callID(t.id, fmt.Sprint(len(t.pieces)), name, string(arguments))
	}
	p := t.own()
	for slices.ContainsFunc(p.calls, func(c toolCall) bool { return c.ID == id }) {
		id = callID(id, t.id)
	}
	p.calls = append(p.calls, newToolCall(id, name, arguments))
	return id
}

// result adds what a tool answered. Without an id it answers the first call
// that is open.
func (t *turn) result(id string, failed bool, parts ...json.RawMessage) {
	if id == "" {
		id = t.openCall()
	}
	t.pieces = append(t.pieces, &piece{role: tree.RoleTool, answers: id, failed: failed, parts: parts})
}

// openCall is the first call without a result of the turn's last piece that
// calls tools.
func (t *turn) openCall() string {
	answered := map[string]bool{}
	for _, p := range slices.Backward(t.pieces) {
		if p.role == tree.RoleTool {
			answered[p.answers] = true
			continue
		}
		for _, c := range p.calls {
			if !answered[c.ID] {
				return c.ID
			}
		}
		return ""
	}
	return ""
}

// says tells whether anything but reasoning is in the turn.
func (t *turn) says() bool {
	return slices.ContainsFunc(t.pieces, func(p *piece) bool { return len(p.parts) > 0 || len(p.calls) > 0 || p.role == tree.RoleTool })
}

// messages writes the chain. A turn that says nothing is one empty message,
// which normalizing leaves out and notes.
func (t *turn) messages() []Message {
	t.mergeThinking()
	if len(t.pieces) == 0 {
		t.own()
	}
	all := make([]Message, len(t.pieces))
	parent := t.parent
	for i, p := range t.pieces {
		id, from := t.id, t.source
		if i < len(t.pieces)-1 {
			id, from = fmt.Sprintf("%s/%d", t.id, i+1), source{"id": t.id}
		}
		extra := source{}
		for name, value := range from {
			extra[name] = value
		}
		extra.put("thinking", strings.Join(p.thinking, "\n\n")).put("is_error", p.failed)
		all[i] = Message{SourceID: id, ParentID: parent, Body: p.body(), Metadata: extra.metadata(), CreatedAt: t.createdAt}
		parent = id
	}
	return all
}

// mergeThinking joins reasoning that stands alone to the piece after it, or
// before it at the end, since it makes no message.
func (t *turn) mergeThinking() {
	alone := func(p *piece) bool { return p.role != tree.RoleTool && len(p.parts) == 0 && len(p.calls) == 0 }
	n := len(t.pieces)
	if n > 1 && alone(t.pieces[n-1]) {
		last, before := t.pieces[n-1], t.pieces[n-2]
		before.thinking = append(before.thinking, last.thinking...)
		t.pieces = t.pieces[:n-1]
	}
}

func (p *piece) body() json.RawMessage {
	return encode(struct {
		Role       tree.Role  `json:"role"`
		Content    any        `json:"content"`
		ToolCalls  []toolCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}{p.role, contentOf(p.parts, p.role), p.calls, p.answers})
}

// contentOf writes parts as content: one text as a string, nothing as null or,
// from a tool, as the empty string.
func contentOf(parts []json.RawMessage, role tree.Role) any {
	switch len(parts) {
	case 0:
		if role == tree.RoleTool {
			return ""
		}
		return nil
	case 1:
		var only part
		if json.Unmarshal(parts[0], &only) == nil && only.Type == "text" {
			return only.Text
		}
	}
	return parts
}

// textBody is a message of one text.
func textBody(role tree.Role, text string) json.RawMessage {
	return encode(struct {
		Role    tree.Role `json:"role"`
		Content string    `json:"content"`
	}{role, text})
}

// titleFrom makes a title of the text of a message, for sources without one.
func titleFrom(body json.RawMessage) string {
	var b object
	_ = json.Unmarshal(body, &b) // a body as textBody wrote it
	line, _, _ := strings.Cut(strings.TrimSpace(b.str("content")), "\n")
	return clip(strings.TrimSpace(oneLine(line)))
}
