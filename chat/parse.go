package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/fault"
)

// MaxNesting is how deep the arrays and objects of a message may be nested.
const MaxNesting = 64

// Parse takes a message apart and checks it by the rules of the chat-completions
// API. Its errors are of kind fault.Invalid. The message refers to raw.
func Parse(raw []byte) (*Message, error) {
	if err := CheckObject(raw, "message"); err != nil {
		return nil, err
	}
	return ParseMember(raw)
}

// ParseMember is Parse of a value that stands in an object which CheckObject took:
// its bytes are not checked once more.
func ParseMember(raw json.RawMessage) (*Message, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		return Parse(raw)
	}
	var d decoder
	m := d.message(raw)
	m.check(&d)
	if d.err != nil {
		return nil, d.err
	}
	m.checked = true
	return m, nil
}

// Checked returns what Parse gives of the message's bytes. A message that Parse returned
// is not parsed again.
func (m *Message) Checked() (*Message, error) {
	if m.checked {
		return m, nil
	}
	return Parse(m.Raw)
}

// Read takes a message apart as far as it can be read. Where raw is no JSON
// object, the message's text is raw. Read never fails, and leaves the checks to
// Message.Checked.
func Read(raw []byte) *Message {
	if trimmed := bytes.TrimLeft(raw, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(raw) {
		return &Message{Raw: raw, Parts: []Part{{Type: "text", Text: string(bytes.ToValidUTF8(raw, []byte("\uFFFD")))}}}
	}
	return new(decoder).message(raw)
}

// CheckParts refuses a part of a content that the chat-completions API doesn't have, such
// as Anthropic's tool_use or Gemini's functionCall: a model would refuse the branch. Parse
// takes it, because exports have such parts.
func (m *Message) CheckParts() error {
	for i, p := range m.Parts {
		if !p.Known() {
			return fault.New(fault.Invalid, "invalid_content", fmt.Sprintf("content[%d].type", i),
				"The chat-completions API has no part of the type %q. It has text, refusal, image_url, input_audio and file; calls of tools stand in tool_calls, and their results are messages of role tool.", fault.Clip(p.Type))
		}
	}
	return nil
}

func (m *Message) check(d *decoder) {
	switch m.Role {
	case System, Developer, User, Assistant, Tool:
	case "":
		d.wrong("invalid_role", "role", "A message needs a role: system, developer, user, assistant or tool.")
	default:
		d.wrong("invalid_role", "role", "%q is no role. Use system, developer, user, assistant or tool.", fault.Clip(string(m.Role)))
	}
	m.checkContent(d)
	m.checkCalls(d)
	switch {
	case m.Role == Tool && m.Answers() == "":
		d.wrong("missing_tool_call_id", "tool_call_id", "A tool message needs the id of the call that it answers.")
	case m.Role != Tool && m.CallID != nil:
		d.wrong("unexpected_tool_call_id", "tool_call_id", "Only a tool message answers a call; this one's role is %s.", m.Role)
	}
}

func (m *Message) checkContent(d *decoder) {
	switch {
	case len(m.Parts) == 0 && !isNull(m.Content):
		d.wrong("empty_content", "content", "The array of parts is empty. Leave the message out, or say something in it.")
	case m.Plain && (m.Role == Tool || strings.TrimSpace(m.Parts[0].Text) != ""):
		return // an empty result is what a tool that prints nothing gives
	case len(m.Parts) > 0 && !m.Plain:
		return
	case m.Role == Assistant && (len(m.Calls) > 0 || m.Refusal != nil && *m.Refusal != ""):
		return
	}
	d.wrong("empty_content", "content", `A message needs content. Only an assistant message with tool_calls or a refusal may do without, and a tool's may be "".`)
}

func (m *Message) checkCalls(d *decoder) {
	switch {
	case !m.hasCalls:
		return
	case m.Role != Assistant:
		d.wrong("unexpected_tool_calls", "tool_calls", "Only an assistant message calls tools; this one's role is %s.", m.Role)
	case len(m.Calls) == 0:
		d.wrong("invalid_tool_calls", "tool_calls", "The array is empty. Leave tool_calls out where no tool is called.")
	}
	seen := make(map[string]bool, len(m.Calls))
	for i, call := range m.Calls {
		switch {
		case call.ID == "":
			d.wrong("invalid_tool_calls", fmt.Sprintf("tool_calls[%d].id", i), "A tool call needs an id, by which its result names it.")
		case seen[call.ID]:
			d.wrong("invalid_tool_calls", fmt.Sprintf("tool_calls[%d].id", i), "Two calls of one message have the id %q.", fault.Clip(call.ID))
		case call.Name == "":
			d.wrong("invalid_tool_calls", fmt.Sprintf("tool_calls[%d]", i), `A tool call needs {"type": "function", "function": {"name": …, "arguments": …}}, or the same of a custom tool.`)
		}
		seen[call.ID] = true
	}
}

// CheckObject refuses JSON that Postgres could not store or index, or that would
// exhaust a reader's stack. It takes one JSON object of valid UTF-8, without a
// NUL character or half a surrogate pair, and without nesting deeper than
// MaxNesting. The argument what names the object in the error. The error is of
// kind fault.Invalid, and has no field.
func CheckObject(raw []byte, what string) error {
	switch {
	case !utf8.Valid(raw):
		return fault.New(fault.Invalid, "invalid_utf8", "", "The %s is not valid UTF-8.", what)
	case !json.Valid(raw):
		return fault.New(fault.Invalid, "invalid_json", "", "The %s is not valid JSON.", what)
	case bytes.TrimLeft(raw, " \t\r\n")[0] != '{':
		return fault.New(fault.Invalid, "wrong_type", "", "The %s must be a JSON object.", what)
	}
	return CheckString(raw, what)
}

// CheckString refuses valid JSON that Postgres could not store, as CheckObject does. It
// walks it once, minding nesting and escapes.
func CheckString(raw []byte, what string) error {
	depth := 0
	inString := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case !inString && (c == '{' || c == '['):
			if depth++; depth > MaxNesting {
				return fault.New(fault.Invalid, "too_deep", "", "The %s nests arrays and objects more than %d deep.", what, MaxNesting)
			}
		case !inString && (c == '}' || c == ']'):
			depth--
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++
			if raw[i] != 'u' {
				continue
			}
			unit := hex4(raw[i+1:])
			i += 4
			switch {
			case unit == 0:
				return fault.New(fault.Invalid, "invalid_character", "", `The %s has a NUL character (\u0000), which Postgres can't store. Take it out.`, what)
			case unit >= 0xDC00 && unit < 0xE000, unit >= 0xD800 && unit < 0xDC00 && !lowFollows(raw[i+1:]):
				return fault.New(fault.Invalid, "invalid_character", "", `The %s has half a surrogate pair (\u%04x). Write the whole character.`, what, unit)
			case unit >= 0xD800 && unit < 0xDC00:
				i += 6
			}
		}
	}
	return nil
}

// lowFollows tells whether the second half of a surrogate pair comes next.
func lowFollows(raw []byte) bool {
	return len(raw) > 6 && raw[0] == '\\' && raw[1] == 'u' && hex4(raw[2:])&^0x3FF == 0xDC00
}
