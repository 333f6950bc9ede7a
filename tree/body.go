package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/internal/rawjson"
	"github.com/coppice-chat/coppice/tokens"
)

// body is what a message body says, parsed once for all who ask: the checks,
// the token count and the search index.
type body struct {
	Role       Role
	Content    json.RawMessage
	ToolCalls  []toolCall
	ToolCallID *string
	Name       *string
	Refusal    *string

	text  string // all text of the content, parts joined by newlines
	plain bool   // content is one string
	other int    // tokens of the parts that are not text, estimated
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function *struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
	Custom *struct {
		Name  string `json:"name"`
		Input string `json:"input"`
	} `json:"custom"`
}

// called gives the function's or custom tool's name and what it was called
// with.
func (c toolCall) called() (name, arguments string) {
	switch {
	case c.Function != nil:
		return c.Function.Name, c.Function.Arguments
	case c.Custom != nil:
		return c.Custom.Name, c.Custom.Input
	}
	return "", ""
}

// parseBody checks a body by the rules of the chat-completions API. Errors are
// *Error of kind ErrInvalid or ErrTooLarge.
func parseBody(raw json.RawMessage) (*body, error) {
	if len(raw) > MaxBodyBytes {
		return nil, tooLarge("message_too_large", "", "The message has %d bytes, and %d is the most. Store large content elsewhere and refer to it.", len(raw), MaxBodyBytes)
	}
	if err := checkObject(raw, "message"); err != nil {
		return nil, err
	}
	b, err := readMembers(raw)
	if err != nil {
		return nil, err
	}
	switch b.Role {
	case RoleSystem, RoleDeveloper, RoleUser, RoleAssistant, RoleTool:
	case "":
		return nil, invalid("invalid_role", "role", "A message needs a role: system, developer, user, assistant or tool.")
	default:
		return nil, invalid("invalid_role", "role", "%q is no role. Use system, developer, user, assistant or tool.", clip(string(b.Role)))
	}
	if err := b.parseContent(); err != nil {
		return nil, err
	}
	if err := b.checkCalls(); err != nil {
		return nil, err
	}
	return b, nil
}

// readMembers reads by exact name, where encoding/json would also take "Role"
// for role, which no model does. Of several with one name it takes the last, as
// encoding/json does. The object is valid JSON.
func readMembers(raw json.RawMessage) (*body, error) {
	var b body
	var role, toolCalls, toolCallID, author, refusal json.RawMessage
	for quoted, value := range rawjson.Members(raw) {
		switch name := rawjson.Name(quoted); string(name) {
		case "role":
			role = value
		case "content":
			b.Content = value
		case "tool_calls":
			toolCalls = value
		case "tool_call_id":
			toolCallID = value
		case "name":
			author = value
		case "refusal":
			refusal = value
		default:
			if slices.Contains(reserved, string(name)) {
				return nil, invalid("reserved_member", string(name), "The body can't have a member of this name, which stands beside it in an answer.")
			}
		}
	}
	for _, m := range []struct {
		name   string
		value  json.RawMessage
		target any
	}{
		{"role", role, &b.Role}, {"tool_calls", toolCalls, &b.ToolCalls}, {"tool_call_id", toolCallID, &b.ToolCallID},
		{"name", author, &b.Name}, {"refusal", refusal, &b.Refusal},
	} {
		if m.value == nil {
			continue
		}
		if err := json.Unmarshal(m.value, m.target); err != nil {
			return nil, invalid("wrong_type", m.name, "This is not what the chat-completions API takes: %v.", err)
		}
	}
	return &b, nil
}

// reserved are the members that an answer puts beside those of the body.
var reserved = []string{"id", "conversation_id", "parent_id", "pinned", "metadata", "tokens", "depth", "siblings", "created_at"}

func (b *body) parseContent() error {
	content := bytes.TrimSpace(b.Content)
	empty := false
	switch {
	case len(content) == 0 || string(content) == "null":
		empty = true
	case content[0] == '"':
		b.plain = true
		b.text = rawjson.String(content)
		// An empty result is what a tool that prints nothing gives.
		empty = strings.TrimSpace(b.text) == "" && b.Role != RoleTool
	case content[0] == '[':
		if err := b.parseParts(content); err != nil {
			return err
		}
	default:
		return invalid("invalid_content", "content", "Content must be a string or an array of parts.")
	}
	if !empty {
		return nil
	}
	if b.Role == RoleAssistant && (len(b.ToolCalls) > 0 || b.Refusal != nil && *b.Refusal != "") {
		return nil
	}
	return invalid("empty_content", "content", "A message needs content. Only an assistant message with tool_calls or a refusal may do without, and a tool's may be \"\".")
}

func (b *body) parseParts(content json.RawMessage) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(content, &parts); err != nil {
		return invalid("invalid_content", "content", "The parts can't be read: %v.", err)
	}
	if len(parts) == 0 {
		return invalid("empty_content", "content", "The array of parts is empty. Leave the message out, or say something in it.")
	}
	var text []string
	for i, raw := range parts {
		var part struct {
			Type    string `json:"type"`
			Text    string `json:"text"`
			Refusal string `json:"refusal"`
		}
		field := fmt.Sprintf("content[%d]", i)
		if raw = bytes.TrimSpace(raw); raw[0] != '{' {
			return invalid("invalid_content", field, "A part must be an object with a type, such as {\"type\": \"text\", \"text\": \"…\"}.")
		}
		if err := json.Unmarshal(raw, &part); err != nil {
			return invalid("invalid_content", field, "The part can't be read: its type, text and refusal must be strings.")
		}
		switch part.Type {
		case "":
			return invalid("invalid_content", field+".type", "A part needs a type, such as text or image_url.")
		case "text":
			text = append(text, part.Text)
		case "refusal":
			text = append(text, part.Refusal)
		default:
			b.other += partTokens(part.Type, len(raw))
		}
	}
	b.text = strings.Join(text, "\n")
	return nil
}

func (b *body) checkCalls() error {
	if b.ToolCalls != nil {
		if b.Role != RoleAssistant {
			return invalid("unexpected_tool_calls", "tool_calls", "Only an assistant message calls tools; this one's role is %s.", b.Role)
		}
		if len(b.ToolCalls) == 0 {
			return invalid("invalid_tool_calls", "tool_calls", "The array is empty. Leave tool_calls out where no tool is called.")
		}
		seen := make(map[string]bool, len(b.ToolCalls))
		for i, call := range b.ToolCalls {
			field := fmt.Sprintf("tool_calls[%d]", i)
			if call.ID == "" {
				return invalid("invalid_tool_calls", field+".id", "A tool call needs an id, by which its result names it.")
			}
			if seen[call.ID] {
				return invalid("invalid_tool_calls", field+".id", "Two calls of one message have the id %q.", clip(call.ID))
			}
			seen[call.ID] = true
			if name, _ := call.called(); name == "" {
				return invalid("invalid_tool_calls", field, "A tool call needs {\"type\": \"function\", \"function\": {\"name\": …, \"arguments\": …}}, or the same of a custom tool.")
			}
		}
	}
	switch {
	case b.Role == RoleTool && (b.ToolCallID == nil || *b.ToolCallID == ""):
		return invalid("missing_tool_call_id", "tool_call_id", "A tool message needs the id of the call that it answers.")
	case b.Role != RoleTool && b.ToolCallID != nil:
		return invalid("unexpected_tool_call_id", "tool_call_id", "Only a tool message answers a call; this one's role is %s.", b.Role)
	}
	return nil
}

// maxSearchBytes bounds the text of one message that is searched. Postgres
// takes 1 MiB of a tsvector, and words of three letters, all different, make
// one two and a half times their text.
const maxSearchBytes = 256 << 10

// searchText is the text to search where it isn't the plain content that the
// index reads by itself.
func (b *body) searchText() (text string, ok bool) {
	if b.plain && len(b.text) <= maxSearchBytes {
		return "", false
	}
	if !b.plain && b.text == "" && len(bytes.TrimSpace(b.Content)) == 0 {
		return "", false
	}
	text = b.text
	if len(text) > maxSearchBytes {
		cut := maxSearchBytes
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	return text, true
}

// Costs of a message besides its text, in tokens. The first three are how
// OpenAI's models frame chat messages and calls (OpenAI cookbook, "How to count
// tokens with tiktoken"); the others are estimates of parts that are not text.
const (
	messageTokens = 3   // start, role and end
	nameTokens    = 1   // a name, besides its text
	callTokens    = 8   // a tool call, besides its id, name and arguments
	imageTokens   = 765 // an image of 1024 × 1024 in high detail: 85 + 4 tiles × 170
	bytesPerToken = 40  // base64 of audio (about 10 tokens a second at 24 kbit/s) and of files
)

// partTokens estimates a part that is not text from its type and the bytes of
// its JSON.
func partTokens(kind string, bytes int) int {
	if kind == "image_url" {
		return imageTokens
	}
	return messageTokens + bytes/bytesPerToken
}

// tokens is what the message costs in a context.
func (b *body) tokens(c tokens.Counter) int {
	n := messageTokens + b.other + c.Count(b.text)
	if b.Name != nil {
		n += nameTokens + c.Count(*b.Name)
	}
	if b.Refusal != nil {
		n += c.Count(*b.Refusal)
	}
	if b.ToolCallID != nil {
		n += c.Count(*b.ToolCallID)
	}
	for _, call := range b.ToolCalls {
		name, arguments := call.called()
		n += callTokens + c.Count(call.ID) + c.Count(name) + c.Count(arguments)
	}
	return n
}
