package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-chat/coppice/chat"
)

// An Entry is a message of a request as a chat-completions message. A message of a
// user's with the results of two tools and a question is three entries.
type Entry struct {
	Message *chat.Message
	// Blocks are the blocks of the request that the message stands for; nil of a
	// message with the pictures of results, which stand in the results' blocks.
	Blocks []json.RawMessage
	// Record has all blocks of an assistant's message or of a user's, if one of them
	// has no form in chat completions; nil for none.
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
	h := history{strict: strict}
	if text := systemText(r.System); text != "" {
		h.say(chat.System, []chat.Part{chat.TextPart(text)}, r.System, nil, "system")
	}
	for i, m := range r.Messages {
		field := fieldAt("messages", i)
		switch m.Role {
		case "assistant":
			h.assistant(m.Content, field)
		case "system":
			h.system(m.Content, field)
		default:
			h.user(m.Content, field)
		}
	}
	if last := len(r.Messages) - 1; strict && last >= 0 && len(r.Messages[last].Content) == 0 {
		h.fail(wrong(fieldAt("messages", last)+".content", "The last message says nothing. Send a content, or leave the message out."))
	}
	return h.entries, h.err
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
	strict  bool
	entries []Entry
	err     error
}

func (h *history) fail(err error) {
	if h.err == nil {
		h.err = err
	}
}

// say adds a message, unless it says nothing.
func (h *history) say(role chat.Role, parts []chat.Part, blocks []json.RawMessage, record json.RawMessage, field string) {
	if len(parts) == 0 || len(parts) == 1 && parts[0].Text == "" && parts[0].IsText() {
		return
	}
	h.add(&chat.Message{Role: role, Parts: parts}, blocks, record, field)
}

func (h *history) add(m *chat.Message, blocks []json.RawMessage, record json.RawMessage, field string) {
	reasoning := m.Reasoning
	m, err := chat.Parse(m.Encode())
	if err != nil {
		h.fail(at(err, field))
		return
	}
	m.Reasoning = reasoning
	h.entries = append(h.entries, Entry{m, blocks, record, field})
}

// assistant adds what a model said. A message that says nothing is left out, as
// Anthropic's models leave it out.
func (h *history) assistant(blocks []json.RawMessage, field string) {
	s := saidBy(blocks)
	if m := s.message(); m != nil {
		h.add(m, blocks, s.record(blocks), field)
	}
}

// user adds the results of tools first, as models want them, then the pictures and
// files of the results with what else the user says.
func (h *history) user(blocks []json.RawMessage, field string) {
	var rest []json.RawMessage
	var parts []chat.Part
	formless := false
	for i, b := range blocks {
		if typeOf(b) == "tool_result" {
			parts = append(parts, h.result(b, fieldAt(field+".content", i))...)
		}
	}
	for i, b := range blocks {
		if typeOf(b) == "tool_result" {
			continue
		}
		rest = append(rest, b)
		made, known := h.parts(b, fieldAt(field+".content", i))
		parts = append(parts, made...)
		formless = formless || !known
	}
	var record json.RawMessage
	if formless {
		record = array(rest)
	}
	h.say(chat.User, parts, rest, record, field)
}

// system adds instructions that stand amid the messages. Clients put them behind the
// message of the user's that they belong to. Here they stand before it, because a branch
// ends in what is to be answered. Behind the results of tools they are the user's.
func (h *history) system(blocks []json.RawMessage, field string) {
	parts := []chat.Part{chat.TextPart(systemText(blocks))}
	n := len(h.entries)
	if n == 0 || h.entries[n-1].Message.Role != chat.User {
		role := chat.System
		if n > 0 && h.entries[n-1].Message.Role == chat.Tool {
			role = chat.User
		}
		h.say(role, parts, blocks, nil, field)
		return
	}
	question := h.entries[n-1]
	h.entries = h.entries[:n-1]
	h.say(chat.System, parts, blocks, nil, field)
	h.entries = append(h.entries, question)
}

// result adds the result of a tool, and returns its parts that aren't text: a message
// of a tool has only text.
func (h *history) result(b json.RawMessage, field string) (others []chat.Part) {
	var given struct {
		ToolUseID string `json:"tool_use_id"`
		Content   json.RawMessage
	}
	if json.Unmarshal(b, &given) != nil || given.ToolUseID == "" {
		h.fail(wrong(field+".tool_use_id", "A result needs the id of the call that it answers."))
		return nil
	}
	content, err := contentOf(orNull(given.Content), field+".content")
	if err != nil {
		h.fail(err)
		return nil
	}
	var texts []string
	for i, c := range content {
		parts, _ := h.parts(c, fieldAt(field+".content", i))
		for _, p := range parts {
			if p.IsText() {
				texts = append(texts, p.Text)
				continue
			}
			texts, others = append(texts, chat.Shown([]chat.Part{p})), append(others, p)
		}
	}
	m := &chat.Message{Role: chat.Tool, CallID: &given.ToolUseID, Parts: []chat.Part{chat.TextPart(strings.Join(texts, "\n"))}}
	h.add(m, []json.RawMessage{b}, nil, field)
	return others
}

// parts are those of a block. known says that they say all that the block says.
func (h *history) parts(b json.RawMessage, field string) (parts []chat.Part, known bool) {
	var given struct {
		Type, Text, Title string
		ToolName          string `json:"tool_name"`
		Source            source
		Content           json.RawMessage
	}
	if err := json.Unmarshal(b, &given); err != nil {
		h.fail(wrong(field, "The block has a member of a type that it can't have."))
		return nil, false
	}
	switch given.Type {
	case "text":
		if text := storable(given.Text); text != "" {
			parts = []chat.Part{chat.TextPart(text)}
		}
		return parts, true
	case "image":
		if url := given.Source.url(); url != "" {
			return []chat.Part{part("image_url", is("url", quote(url)))}, true
		}
	case "document", "search_result":
		switch s := given.Source; {
		case given.Type == "search_result" || s.Type == "content":
			inner, err := contentOf(orNull(firstOf(given.Content, s.Content)), field+".content")
			if err != nil {
				h.fail(err)
			}
			for i, c := range inner {
				made, _ := h.parts(c, fieldAt(field+".content", i))
				parts = append(parts, made...)
			}
			return titled(given.Title, parts), given.Type == "document"
		case s.Type == "text":
			return titled(given.Title, []chat.Part{chat.TextPart(storable(s.Data))}), true
		case s.Type == "base64":
			return []chat.Part{part("file", is("filename", quote(cmp.Or(given.Title, "document"))), is("file_data", quote(s.url())))}, true
		}
	case "tool_reference":
		return []chat.Part{chat.TextPart(given.ToolName)}, false
	}
	if h.strict {
		kind := fmt.Sprintf("type %q", given.Type)
		if given.Source.Type != "" {
			kind += fmt.Sprintf(" and source %q", given.Source.Type)
		}
		h.fail(wrong(field, "This server's models have no form for this block of the %s. Send its content as text, or as base64.", kind))
	}
	return []chat.Part{chat.TextPart("[" + given.Type + "]")}, false
}

// A source says where the bytes of a picture or a document are.
type source struct {
	Type, Data, URL string
	MediaType       string `json:"media_type"`
	Content         json.RawMessage
}

var lineBreaks = strings.NewReplacer("\r", "", "\n", "")

// url is the address of the bytes; "" if only Anthropic knows it.
func (s source) url() string {
	switch s.Type {
	case "base64":
		return "data:" + s.MediaType + ";base64," + lineBreaks.Replace(s.Data) // which few models take
	case "url":
		return s.URL
	}
	return ""
}

func titled(title string, parts []chat.Part) []chat.Part {
	if title == "" {
		return parts
	}
	return append([]chat.Part{chat.TextPart(title)}, parts...)
}

// part makes a part of a content from the members of its object.
func part(kind string, members ...chat.Member) chat.Part {
	return chat.ReadPart(object(is("type", quote(kind)), is(kind, object(members...))))
}

func quote(s string) json.RawMessage { return chat.AppendString(nil, s) }

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

func firstOf(a, b json.RawMessage) json.RawMessage {
	if len(a) > 0 {
		return a
	}
	return b
}

func fieldAt(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }
