package transfer

import (
	"bytes"
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
	c          *Conversation
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
	ids      map[string]bool // of calls, as turn.call makes them
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
	return t.begin(&piece{role: t.role})
}

// begin begins a piece, if the conversation has room for another message. The
// piece is otherwise of no conversation.
func (t *turn) begin(p *piece) *piece {
	if t.c.room() {
		t.pieces = append(t.pieces, p)
	}
	return p
}

// text adds text that says something.
func (t *turn) text(s string) {
	if strings.TrimSpace(s) != "" {
		t.part(textPart(s))
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
	if !t.c.room() {
		return id
	}
	if p.ids == nil {
		p.ids = map[string]bool{}
	}
	for p.ids[id] {
		id = callID(id, t.id)
	}
	p.ids[id] = true
	p.calls = append(p.calls, newToolCall(id, name, arguments))
	return id
}

// result adds what a tool answered. Without an id it answers the first call
// that is open.
func (t *turn) result(id string, failed bool, parts ...json.RawMessage) {
	if id == "" {
		id = t.openCall()
	}
	t.begin(&piece{role: tree.RoleTool, answers: id, failed: failed, parts: parts})
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

// hasText tells whether the turn's role says anything but calls.
func (t *turn) hasText() bool {
	return slices.ContainsFunc(t.pieces, func(p *piece) bool { return p.role == t.role && len(p.parts) > 0 })
}

// messages writes the chain. A turn that says nothing is one empty message,
// which normalizing leaves out and notes.
func (t *turn) messages() []Message {
	t.mergeThinking()
	if len(t.pieces) == 0 {
		t.own()
	}
	all := make([]Message, len(t.pieces))
	parent, about := t.parent, source{}.put("id", t.id)
	for i, p := range t.pieces {
		id, from := t.id, t.source
		if i < len(t.pieces)-1 {
			id, from = fmt.Sprintf("%s/%d", t.id, i+1), about
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
	size := 100
	for _, raw := range p.parts {
		size += len(raw) + 1
	}
	body := bytes.NewBuffer(make([]byte, 0, size))
	fmt.Fprintf(body, `{"role":%s,"content":`, encode(p.role))
	text := p.onlyText()
	switch {
	case text != nil:
		body.Write(text)
	case len(p.parts) > 0:
		for i, raw := range p.parts {
			body.WriteByte("[,"[min(i, 1)])
			_ = json.Compact(body, raw) // a part is valid JSON
		}
		body.WriteByte(']')
	case p.role == tree.RoleTool:
		body.WriteString(`""`)
	default:
		body.WriteString("null")
	}
	if len(p.calls) > 0 {
		body.WriteString(`,"tool_calls":`)
		body.Write(encode(p.calls))
	}
	if p.answers != "" {
		body.WriteString(`,"tool_call_id":`)
		body.Write(quote("", p.answers, ""))
	}
	body.WriteByte('}')
	return body.Bytes()
}

// onlyText gives the text of the one part there is, as JSON; nil where there
// are more, or it is none of text.
func (p *piece) onlyText() json.RawMessage {
	if len(p.parts) != 1 {
		return nil
	}
	only := objectOf(p.parts[0])
	if only.str("type") != "text" {
		return nil
	}
	switch {
	case isString(only["text"]):
		return only["text"]
	case only.has("text"):
		return nil
	}
	return json.RawMessage(`""`)
}

// textOf gives the text of the parts that are text.
func (p *piece) textOf() string {
	var text []string
	for _, raw := range p.parts {
		if o := objectOf(raw); o.str("type") == "text" {
			text = append(text, o.str("text"))
		}
	}
	return strings.Join(text, "\n\n")
}

// textBody is a message of one text.
func textBody(role tree.Role, text string) json.RawMessage {
	return quote(`{"role":`+string(encode(role))+`,"content":`, text, "}")
}

// titleFrom makes a title of the text of a message, for sources without one.
func titleFrom(body json.RawMessage) string {
	return titleOf(objectOf(body).str("content")) // a body as textBody wrote it
}

func titleOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return clip(strings.TrimSpace(oneLine(cutEnd(line, 1000))))
}
