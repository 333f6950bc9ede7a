package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
)

// An Entry is a message of a request as a chat-completions message. A message of a
// user's with the results of two tools and a question is three entries.
type Entry struct {
	Message *chat.Message
	// Blocks are the blocks of the request that the message stands for; nil of a
	// message with the pictures of results, which stand in the results' blocks.
	Blocks []json.RawMessage
	// Record has all blocks of the message if one of them says more than chat
	// completions have a form for; nil for none.
	Record json.RawMessage
	Field  string // where the request has it, such as messages[2]
}

// billing begins a block of the system prompt by which a client tells how it was
// paid for. It says nothing to a model, and changes from version to version.
const billing = "x-anthropic-billing-header:"

// History returns the request's system prompt and messages as chat-completions
// messages. With strict, a block that has no form in chat completions is a
// fault.Invalid, if a model needs to know it to understand the history. Otherwise its
// type stands in its place.
func (r *Request) History(strict bool) ([]Entry, error) {
	h := history{Reader: &reader.Reader{}, strict: strict}
	var body *reader.Path
	if text := systemText(r.System); text != "" {
		h.say(chat.System, []chat.Part{chat.TextPart(text)}, r.System, nil, body.Member("system"))
	}
	for i, m := range r.Messages {
		at := body.Element("messages", i)
		switch m.Role {
		case "assistant":
			h.assistant(m.Content, at)
		case "system":
			h.system(m.Content, at)
		default:
			h.user(m.Content, at)
		}
		if strict && i == len(r.Messages)-1 && len(m.Content) == 0 {
			h.WrongAt(at.Member("content"), reader.CodeMissing, "The last message says nothing. Send a content, or leave the message out.")
		}
	}
	return h.entries, h.Failed()
}

// Chat returns the request as one for a model of chat completions: its History, strictly,
// and its Extra.
func (r *Request) Chat() (entries []Entry, extra map[string]json.RawMessage, err error) {
	if entries, err = r.History(true); err == nil {
		extra, err = r.Extra()
	}
	return entries, extra, err
}

// TakePrefill takes out of the request the last message if it is the assistant's, and
// returns its blocks: a model goes on behind them, so they are the beginning of its
// answer and no message of their own.
func (r *Request) TakePrefill() (blocks []json.RawMessage) {
	n := len(r.Messages)
	if n == 0 || r.Messages[n-1].Role != "assistant" {
		return nil
	}
	blocks, r.Messages = r.Messages[n-1].Content, r.Messages[:n-1]
	return blocks
}

// systemText is the text of a system prompt, in one piece.
func systemText(blocks []json.RawMessage) string {
	var texts []string
	for _, b := range blocks {
		if text := storable(textOf(b)); text != "" && !strings.HasPrefix(text, billing) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

type history struct {
	*reader.Reader
	strict  bool
	entries []Entry
}

// say adds a message, unless it says nothing.
func (h *history) say(role chat.Role, parts []chat.Part, blocks []json.RawMessage, record json.RawMessage, at *reader.Path) {
	if len(parts) == 0 || len(parts) == 1 && parts[0].Text == "" && parts[0].IsText() {
		return
	}
	h.add(&chat.Message{Role: role, Parts: parts}, blocks, record, at)
}

func (h *history) add(m *chat.Message, blocks []json.RawMessage, record json.RawMessage, at *reader.Path) {
	m, err := m.Encoded().Checked()
	if err != nil {
		h.Fail(fault.Of(fault.At(err, at.String())))
		return
	}
	h.entries = append(h.entries, Entry{m, blocks, record, at.String()})
}

// assistant adds what a model said. A message that says nothing is left out, as
// Anthropic's models leave it out.
func (h *history) assistant(blocks []json.RawMessage, at *reader.Path) {
	s := saidBy(blocks)
	if m := s.message(); m != nil {
		h.add(m, blocks, s.record(blocks), at)
	}
}

// user adds the results of tools first, as models want them, then the pictures and
// files of the results with what else the user says.
func (h *history) user(blocks []json.RawMessage, at *reader.Path) {
	var rest []json.RawMessage
	var parts []chat.Part
	formless := false
	for i, b := range blocks {
		if typeOf(b) == "tool_result" {
			parts = append(parts, h.result(b, at.Element("content", i))...)
		}
	}
	for i, b := range blocks {
		if typeOf(b) == "tool_result" {
			continue
		}
		rest = append(rest, b)
		made, known := h.parts(h.Object(b, at.Element("content", i)))
		parts = append(parts, made...)
		formless = formless || !known
	}
	var record json.RawMessage
	if formless {
		record = chat.AppendArray(nil, rest)
	}
	h.say(chat.User, parts, rest, record, at)
}

// system adds instructions that stand amid the messages. Clients put them behind the
// message of the user's that they belong to. Here they stand before it, because a branch
// ends in what is to be answered. Behind the results of tools they are the user's.
func (h *history) system(blocks []json.RawMessage, at *reader.Path) {
	parts := []chat.Part{chat.TextPart(systemText(blocks))}
	n := len(h.entries)
	if n == 0 || h.entries[n-1].Message.Role != chat.User {
		role := chat.System
		if n > 0 && h.entries[n-1].Message.Role == chat.Tool {
			role = chat.User
		}
		h.say(role, parts, blocks, nil, at)
		return
	}
	question := h.entries[n-1]
	h.entries = h.entries[:n-1]
	h.say(chat.System, parts, blocks, nil, at)
	h.entries = append(h.entries, question)
}

// saysError matches a result that says of itself that it is an error.
var saysError = regexp.MustCompile(`(?i)^\W*\w*error\b`)

// result adds the result of a tool, and returns its parts that aren't text: a message
// of a tool has only text. That the tool failed, a model reads in the text, too.
func (h *history) result(b json.RawMessage, at *reader.Path) (others []chat.Part) {
	o := h.Object(b, at)
	call := o.Required("tool_use_id")
	var texts []string
	for _, p := range h.content(o) {
		if p.IsText() {
			texts = append(texts, p.Text)
			continue
		}
		texts, others = append(texts, chat.Shown([]chat.Part{p})), append(others, p)
	}
	if h.Err == nil {
		blocks, text, record := []json.RawMessage{b}, strings.Join(texts, "\n"), json.RawMessage(nil)
		if string(o.Get("is_error")) == "true" {
			if record = chat.AppendArray(nil, blocks); !saysError.MatchString(text) {
				text = "Error: " + text
			}
		}
		h.add(&chat.Message{Role: chat.Tool, CallID: &call, Parts: []chat.Part{chat.TextPart(text)}}, blocks, record, at)
	}
	return others
}

// content is the parts of the blocks of a content.
func (h *history) content(o reader.Object) (parts []chat.Part) {
	for i, b := range contentOf(o, "content") {
		made, _ := h.parts(h.Object(b, o.At.Element("content", i)))
		parts = append(parts, made...)
	}
	return parts
}

// parts are those of a block. known says that they say all that the block says.
func (h *history) parts(b reader.Object) (parts []chat.Part, known bool) {
	kind, source := b.String("type"), reader.Object{Reader: h.Reader}
	if kind == "image" || kind == "document" { // a search_result has an address there
		source = b.Inner("source")
	}
	from := source.String("type")
	switch {
	case kind == "text":
		if text := storable(b.String("text")); text != "" {
			parts = []chat.Part{chat.TextPart(text)}
		}
		return parts, true
	case kind == "image" && urlOf(source) != "":
		return []chat.Part{part("image_url", "url", urlOf(source))}, true
	case kind == "search_result":
		return titled(b, h.content(b)), false
	case kind == "document" && from == "content":
		return titled(b, h.content(source)), true
	case kind == "document" && from == "text":
		return titled(b, []chat.Part{chat.TextPart(storable(source.String("data")))}), true
	case kind == "document" && from == "base64":
		return []chat.Part{part("file", "filename", cmp.Or(b.String("title"), "document"), "file_data", urlOf(source))}, true
	case kind == "tool_reference":
		return []chat.Part{chat.TextPart(b.String("tool_name"))}, false
	}
	if h.strict {
		named := fmt.Sprintf("type %q", kind)
		if from != "" {
			named += fmt.Sprintf(" and source %q", from)
		}
		h.WrongAt(b.At, reader.CodeUnsupported, "This server's models have no form for this block of the %s. Send its content as text, or as base64.", named)
	}
	return []chat.Part{chat.TextPart("[" + kind + "]")}, false
}

var lineBreaks = strings.NewReplacer("\r", "", "\n", "")

// urlOf is the address of a source's bytes; "" if only Anthropic knows it.
func urlOf(source reader.Object) string {
	switch source.String("type") {
	case "base64":
		return "data:" + source.String("media_type") + ";base64," + lineBreaks.Replace(source.String("data")) // which few models take
	case "url":
		return source.String("url")
	}
	return ""
}

// titled puts a block's title before its parts.
func titled(b reader.Object, parts []chat.Part) []chat.Part {
	if title := b.String("title"); title != "" {
		return append([]chat.Part{chat.TextPart(title)}, parts...)
	}
	return parts
}

// part makes a part of a content from the members of its object.
func part(kind string, members ...any) chat.Part {
	return chat.ReadPart(sdk.JSON("type", kind, kind, sdk.JSON(members...)))
}

func quote(s string) json.RawMessage { return chat.AppendString(nil, s) }
