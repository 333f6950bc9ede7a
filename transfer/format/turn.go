package format

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coppice-chat/coppice/chat"
)

// ImagePart is a content part of an image.
func ImagePart(url string) chat.Part {
	return chat.Part{Type: "image_url", Raw: chat.MustMarshal(map[string]any{"type": "image_url", "image_url": map[string]string{"url": url}})}
}

// A Turn is one message of a program that keeps the text, the reasoning, the tool
// calls and the results of an answer in one list of blocks. In chat completions
// that is a chain of messages: an assistant message with its calls, a tool
// message for each result, and another assistant message.
//
// The last message of the chain has the turn's id, so that a reference to the
// turn, as a parent or as the active head, needs no translation.
type Turn struct {
	c          *Conversation
	node       int
	ID, Parent string
	Role       chat.Role
	Named      string // the name of who says it; "" for none
	CreatedAt  time.Time
	Source     Source
	pieces     []*Piece
	around     int // blocks, of the one that is being read
}

// Turn begins a turn.
func (c *Conversation) Turn(id string, role chat.Role) *Turn {
	return &Turn{c: c, node: c.at, ID: id, Role: role, Source: Source{"id": id}}
}

// A Piece is one message of the chain.
type Piece struct {
	Role     chat.Role
	Name     string // of who says it; "" for none
	Parts    []chat.Part
	Calls    []chat.Call
	IDs      map[string]string // of calls, as Turn.Call makes them, each with the last id that was made of it
	Answers  string
	Thinking []string
	Failed   bool // of a tool's result
}

// NewCall makes a call of a tool. It changes a name that providers wouldn't take.
func NewCall(id, name string, arguments json.RawMessage) chat.Call {
	return chat.Call{ID: id, Name: toolName(name), Arguments: argumentsOf(arguments)}
}

// argumentsOf writes what a tool was called with as the JSON object that
// models write there.
func argumentsOf(raw json.RawMessage) string {
	if text, ok := StringOf(raw); ok {
		raw = json.RawMessage(strings.TrimSpace(text))
		if len(raw) > 0 && (!json.Valid(raw) || raw[0] != '{') {
			raw = chat.MustMarshal(map[string]string{"input": text})
		}
	}
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "{}"
	case raw[0] != '{':
		return string(chat.MustMarshal(map[string]json.RawMessage{"input": raw}))
	}
	return string(chat.MustMarshal(raw))
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
	if t.c.Room() {
		t.pieces = append(t.pieces, p)
	}
	return p
}

// Text adds text, unless it is empty.
func (t *Turn) Text(s string) {
	if strings.TrimSpace(s) != "" {
		t.Part(chat.TextPart(s))
	}
}

// Part adds a content part.
func (t *Turn) Part(part chat.Part) {
	p := t.own()
	p.Parts = append(p.Parts, part)
}

// Think adds reasoning, which stands beside the message: it is no part of what was
// said.
func (t *Turn) Think(s string) {
	if strings.TrimSpace(s) != "" {
		p := t.own()
		p.Thinking = append(p.Thinking, s)
	}
}

// Call adds a tool call and returns its id.
func (t *Turn) Call(id, name string, arguments json.RawMessage) string {
	if id == "" {
		id = CallID(t.ID, fmt.Sprint(len(t.pieces)), name, Compacted(arguments)) // whatever the file's indentation
	}
	p := t.own()
	if !t.c.Room() {
		return id
	}
	if p.IDs == nil {
		p.IDs = map[string]string{}
	}
	given := id
	if last := p.IDs[given]; last != "" {
		id = last // and not through all that were made of it
	}
	for _, taken := p.IDs[id]; taken && t.c.Steps(1); _, taken = p.IDs[id] {
		id = CallID(id, t.ID)
	}
	p.IDs[id] = ""
	if id != given {
		p.IDs[given] = id
	}
	p.Calls = append(p.Calls, NewCall(id, name, arguments))
	return id
}

// Result adds a tool's result. Without an id, it answers the first call that is
// open.
func (t *Turn) Result(id string, failed bool, parts ...chat.Part) {
	if id == "" {
		id = t.openCall()
	}
	t.begin(&Piece{Role: chat.Tool, Answers: id, Failed: failed, Parts: parts})
}

// openCall is the first call without a result of the turn's last piece that
// calls tools.
func (t *Turn) openCall() string {
	answered := map[string]bool{}
	for _, p := range slices.Backward(t.pieces) {
		if !t.c.Steps(1) {
			return ""
		}
		if p.Role == chat.Tool {
			answered[p.Answers] = true
			continue
		}
		for _, c := range p.Calls {
			if !t.c.Steps(1) {
				return ""
			}
			if !answered[c.ID] {
				return c.ID
			}
		}
		return ""
	}
	return ""
}

// Says reports whether the turn has anything but reasoning.
func (t *Turn) Says() bool {
	return slices.ContainsFunc(t.pieces, func(p *Piece) bool { return len(p.Parts) > 0 || len(p.Calls) > 0 || p.Role == chat.Tool })
}

// Said is the text that the turn's own role says.
func (t *Turn) Said() string {
	var said []string
	for _, p := range t.pieces {
		if p.Role == t.Role {
			said = append(said, p.text())
		}
	}
	return Joined("\n\n", said...)
}

// HasText reports whether the messages of the turn's own role have anything but
// calls.
func (t *Turn) HasText() bool {
	return slices.ContainsFunc(t.pieces, func(p *Piece) bool { return p.Role == t.Role && len(p.Parts) > 0 })
}

// Add adds the chain to the conversation. An empty turn is one empty message, which
// package normalize leaves out and notes.
func (t *Turn) Add() {
	t.mergeThinking()
	if len(t.pieces) == 0 {
		t.own()
	}
	all := make([]Message, len(t.pieces))
	parent, about := t.Parent, Source{}.Put("id", t.ID)
	for i, p := range t.pieces {
		id, from := t.ID, t.Source
		if i < len(t.pieces)-1 {
			id, from = fmt.Sprintf("%s/%d", t.ID, i+1), about
		}
		extra := Source{}
		for name, value := range from {
			extra[name] = value
		}
		extra.Put("is_error", p.Failed)
		if p.Role == t.Role {
			p.Name = nameFor(t.Named)
		}
		all[i] = Message{Node: t.node, SourceID: id, ParentID: parent, Body: p.Body(), Reasoning: p.Reasoning(), Metadata: SourceMetadata(extra), CreatedAt: t.CreatedAt}
		parent = id
	}
	t.c.Add(all...)
}

// nameFor makes a name that providers take: without spaces and <|\/>.
func nameFor(name string) string {
	const most = 64
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`<|\/>`, r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	return CutEnd(strings.Join(strings.Fields(name), "_"), most)
}

// Files adds what was attached to a message: the text of a file, a picture that the
// export holds or says where it is, a file of the archive, and of any other the name.
func (t *Turn) Files(o Object) {
	for _, list := range []string{"attachments", "files", "file_attachments", "attachedFiles"} {
		for _, raw := range t.c.List(o, list, t.ID) {
			f, inner := ObjectOf(raw), ObjectOf(raw).Object("file")
			name, ok := StringOf(raw)
			if !ok {
				name = cmp.Or(f.FirstStr("file_name", "fileName", "filename", "name", "title"), inner.Str("filename"))
			}
			kind := f.FirstStr("file_kind", "type")
			if kind == "" || strings.Contains(kind, "/") {
				if kind = "file"; list == "attachments" {
					kind = "attachment"
				}
			}
			text, url := cmp.Or(f.FirstStr("extracted_content", "text"), inner.Object("data").Str("content")), f.Str("url")
			if text != "" {
				t.Text("[" + Named(kind, ": ", name) + "]\n" + text)
				continue
			}
			if t.Role == chat.User {
				if kind == "image" && (strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "http")) {
					t.Part(ImagePart(url))
					continue
				}
				if part, ok := t.c.Attach(f.FirstStr("file_uuid", "id", "file_id"), name); ok {
					t.Part(part)
					continue
				}
			}
			t.Text("[" + Named(kind, ": ", name) + "]")
			t.c.LeftOut(KindAttachment, t.ID, "the %s is not in the export; its name stands in for it", Named(Clip(kind), " ", Clip(name)))
		}
	}
}

// mergeThinking joins reasoning that stands alone to the piece after it, or
// before it at the end, since it makes no message.
func (t *Turn) mergeThinking() {
	alone := func(p *Piece) bool { return p.Role != chat.Tool && len(p.Parts) == 0 && len(p.Calls) == 0 }
	n := len(t.pieces)
	if n > 1 && alone(t.pieces[n-1]) {
		last, before := t.pieces[n-1], t.pieces[n-2]
		before.Thinking = append(before.Thinking, last.Thinking...)
		t.pieces = t.pieces[:n-1]
	}
}

// Body writes the piece as a message.
func (p *Piece) Body() json.RawMessage {
	m := chat.Message{Role: p.Role, Parts: p.Parts, Calls: p.Calls}
	if p.Answers != "" {
		m.CallID = &p.Answers
	}
	if p.Name != "" {
		m.Name = &p.Name
	}
	return m.Encode()
}

// Reasoning is all that was thought.
func (p *Piece) Reasoning() string { return strings.Join(p.Thinking, "\n\n") }

// Say adds text.
func (p *Piece) Say(text string) { p.Parts = append(p.Parts, chat.TextPart(text)) }

// text is that of the parts that are text.
func (p *Piece) text() string {
	var text []string
	for _, part := range p.Parts {
		if part.Type == "text" {
			text = append(text, part.Text)
		}
	}
	return strings.Join(text, "\n\n")
}

// TextBody is a message of one text.
func TextBody(role chat.Role, text string) json.RawMessage {
	return (&Piece{Role: role, Parts: []chat.Part{chat.TextPart(text)}}).Body()
}

// TitleOf makes a title from the start of a text, for sources that have none. A line
// that is only a tag, such as <task>, says nothing.
func TitleOf(text string) string {
	for line := range strings.Lines(CutEnd(text, 1000)) {
		line = strings.TrimSpace(OneLine(line))
		if line != "" && !(strings.HasPrefix(line, "<") && strings.HasSuffix(line, ">") && !strings.Contains(line, " ")) {
			return Clip(line)
		}
	}
	return ""
}
