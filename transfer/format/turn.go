package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/tree"
)

// ImagePart is a content part of an image.
func ImagePart(url string) json.RawMessage {
	return Encode(map[string]any{"type": "image_url", "image_url": map[string]string{"url": url}})
}

// A Turn is one message of a program that keeps the text, the reasoning, the
// tool calls and their results of an answer in one list of blocks. As
// chat-completions has it, that is a chain of messages: the assistant's with
// its calls, a tool's for each result, the assistant's again.
//
// The last message of the chain has the turn's id, so that what names the turn
// as its parent or as the active head needs no translation.
type Turn struct {
	C          *Conversation
	Id, Parent string
	Role       tree.Role
	CreatedAt  time.Time
	Source     Source
	pieces     []*Piece
}

// A Piece is one message of the chain.
type Piece struct {
	Role     tree.Role
	Parts    []json.RawMessage
	Calls    []ToolCall
	IDs      map[string]bool // of calls, as turn.call makes them
	Answers  string
	Thinking []string
	Failed   bool // of a tool's result
}

type ToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func NewToolCall(id, name string, arguments json.RawMessage) ToolCall {
	c := ToolCall{ID: id, Type: "function"}
	c.Function.Name = toolName(name)
	c.Function.Arguments = argumentsOf(arguments)
	return c
}

// argumentsOf writes what a tool was called with as the JSON object that
// models write there.
func argumentsOf(raw json.RawMessage) string {
	if text, ok := StringOf(raw); ok {
		raw = json.RawMessage(strings.TrimSpace(text))
		if len(raw) > 0 && (!json.Valid(raw) || raw[0] != '{') {
			raw = Encode(map[string]string{"input": text})
		}
	}
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "{}"
	case raw[0] != '{':
		return string(Encode(map[string]json.RawMessage{"input": raw}))
	}
	return string(Encode(raw))
}

// own is the piece that what the turn's role says goes to: the last, unless
// that is a tool's.
func (t *Turn) own() *Piece {
	if n := len(t.pieces); n > 0 && t.pieces[n-1].Role == t.Role {
		return t.pieces[n-1]
	}
	return t.begin(&Piece{Role: t.Role})
}

// begin begins a piece, if the conversation has room for another message. The
// piece is otherwise of no conversation.
func (t *Turn) begin(p *Piece) *Piece {
	if t.C.Room() {
		t.pieces = append(t.pieces, p)
	}
	return p
}

// Text adds text that says something.
func (t *Turn) Text(s string) {
	if strings.TrimSpace(s) != "" {
		t.Part(TextPart(s))
	}
}

// Part adds a content part.
func (t *Turn) Part(raw json.RawMessage) {
	p := t.own()
	p.Parts = append(p.Parts, raw)
}

// Think adds reasoning, which goes into the metadata: it is no part of what
// was said.
func (t *Turn) Think(s string) {
	if strings.TrimSpace(s) != "" {
		p := t.own()
		p.Thinking = append(p.Thinking, s)
	}
}

// Call adds a tool call and gives its id.
func (t *Turn) Call(id, name string, arguments json.RawMessage) string {
	if id == "" {
		id = CallID(t.Id, fmt.Sprint(len(t.pieces)), name, string(arguments))
	}
	p := t.own()
	if !t.C.Room() {
		return id
	}
	if p.IDs == nil {
		p.IDs = map[string]bool{}
	}
	for p.IDs[id] {
		id = CallID(id, t.Id)
	}
	p.IDs[id] = true
	p.Calls = append(p.Calls, NewToolCall(id, name, arguments))
	return id
}

// Result adds what a tool answered. Without an id it answers the first call
// that is open.
func (t *Turn) Result(id string, failed bool, parts ...json.RawMessage) {
	if id == "" {
		id = t.openCall()
	}
	t.begin(&Piece{Role: tree.RoleTool, Answers: id, Failed: failed, Parts: parts})
}

// openCall is the first call without a result of the turn's last piece that
// calls tools.
func (t *Turn) openCall() string {
	answered := map[string]bool{}
	for _, p := range slices.Backward(t.pieces) {
		if p.Role == tree.RoleTool {
			answered[p.Answers] = true
			continue
		}
		for _, c := range p.Calls {
			if !answered[c.ID] {
				return c.ID
			}
		}
		return ""
	}
	return ""
}

// Says tells whether anything but reasoning is in the turn.
func (t *Turn) Says() bool {
	return slices.ContainsFunc(t.pieces, func(p *Piece) bool { return len(p.Parts) > 0 || len(p.Calls) > 0 || p.Role == tree.RoleTool })
}

// HasText tells whether the turn's role says anything but calls.
func (t *Turn) HasText() bool {
	return slices.ContainsFunc(t.pieces, func(p *Piece) bool { return p.Role == t.Role && len(p.Parts) > 0 })
}

// Messages writes the chain. A turn that says nothing is one empty message,
// which normalizing leaves out and notes.
func (t *Turn) Messages() []Message {
	t.mergeThinking()
	if len(t.pieces) == 0 {
		t.own()
	}
	all := make([]Message, len(t.pieces))
	parent, about := t.Parent, Source{}.Put("id", t.Id)
	for i, p := range t.pieces {
		id, from := t.Id, t.Source
		if i < len(t.pieces)-1 {
			id, from = fmt.Sprintf("%s/%d", t.Id, i+1), about
		}
		extra := Source{}
		for name, value := range from {
			extra[name] = value
		}
		extra.Put("thinking", strings.Join(p.Thinking, "\n\n")).Put("is_error", p.Failed)
		all[i] = Message{SourceID: id, ParentID: parent, Body: p.Body(), Metadata: extra.Metadata(), CreatedAt: t.CreatedAt}
		parent = id
	}
	return all
}

// mergeThinking joins reasoning that stands alone to the piece after it, or
// before it at the end, since it makes no message.
func (t *Turn) mergeThinking() {
	alone := func(p *Piece) bool { return p.Role != tree.RoleTool && len(p.Parts) == 0 && len(p.Calls) == 0 }
	n := len(t.pieces)
	if n > 1 && alone(t.pieces[n-1]) {
		last, before := t.pieces[n-1], t.pieces[n-2]
		before.Thinking = append(before.Thinking, last.Thinking...)
		t.pieces = t.pieces[:n-1]
	}
}

func (p *Piece) Body() json.RawMessage {
	size := 100
	for _, raw := range p.Parts {
		size += len(raw) + 1
	}
	body := bytes.NewBuffer(make([]byte, 0, size))
	fmt.Fprintf(body, `{"role":%s,"content":`, Encode(p.Role))
	text := p.onlyText()
	switch {
	case text != nil:
		body.Write(text)
	case len(p.Parts) > 0:
		for i, raw := range p.Parts {
			body.WriteByte("[,"[min(i, 1)])
			_ = json.Compact(body, raw) // a part is valid JSON
		}
		body.WriteByte(']')
	case p.Role == tree.RoleTool:
		body.WriteString(`""`)
	default:
		body.WriteString("null")
	}
	if len(p.Calls) > 0 {
		body.WriteString(`,"tool_calls":`)
		body.Write(Encode(p.Calls))
	}
	if p.Answers != "" {
		body.WriteString(`,"tool_call_id":`)
		body.Write(quote("", p.Answers, ""))
	}
	body.WriteByte('}')
	return body.Bytes()
}

// onlyText gives the text of the one part there is, as JSON; nil where there
// are more, or it is none of text.
func (p *Piece) onlyText() json.RawMessage {
	if len(p.Parts) != 1 {
		return nil
	}
	only := ObjectOf(p.Parts[0])
	if only.Str("type") != "text" {
		return nil
	}
	switch {
	case IsString(only["text"]):
		return only["text"]
	case only.Has("text"):
		return nil
	}
	return json.RawMessage(`""`)
}

// TextOf gives the text of the parts that are text.
func (p *Piece) TextOf() string {
	var text []string
	for _, raw := range p.Parts {
		if o := ObjectOf(raw); o.Str("type") == "text" {
			text = append(text, o.Str("text"))
		}
	}
	return strings.Join(text, "\n\n")
}

// TextBody is a message of one text.
func TextBody(role tree.Role, text string) json.RawMessage {
	return quote(`{"role":`+string(Encode(role))+`,"content":`, text, "}")
}

// TitleFrom makes a title of the text of a message, for sources without one.
func TitleFrom(body json.RawMessage) string {
	return TitleOf(ObjectOf(body).Str("content")) // a body as textBody wrote it
}

func TitleOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return Clip(strings.TrimSpace(OneLine(CutEnd(line, 1000))))
}
