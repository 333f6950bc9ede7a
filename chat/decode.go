package chat

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-chat/coppice/fault"
)

// A decoder takes a valid JSON object apart. It goes on where something is not
// as it should be, and remembers the first of these things.
type decoder struct{ err *fault.Error }

func (d *decoder) wrong(code, field, format string, args ...any) {
	if d.err == nil {
		d.err = fault.New(fault.Invalid, code, field, format, args...)
	}
}

// message reads members by their exact names, where encoding/json would also
// take "Role" for role, which no model does. Of several with one name it takes
// the last, as encoding/json does.
func (d *decoder) message(raw json.RawMessage) *Message {
	m := &Message{Raw: raw}
	var role, calls, callID, name, refusal json.RawMessage
	for quoted, value := range membersOf(raw) {
		switch member := nameOf(quoted); string(member) {
		case "role":
			role = value
		case "content":
			m.Content = value
		case "tool_calls":
			calls = value
		case "tool_call_id":
			callID = value
		case "name":
			name = value
		case "refusal":
			refusal = value
		default:
			m.Others = append(m.Others, Member{string(member), value})
		}
	}
	if text := d.optional(role, "role"); text != nil {
		m.Role = Role(*text)
	}
	m.CallID = d.optional(callID, "tool_call_id")
	m.Name = d.optional(name, "name")
	m.Refusal = d.optional(refusal, "refusal")
	m.Calls, m.hasCalls = d.calls(calls)
	d.content(m)
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if value := m.Other(name); m.Reasoning == "" && isString(value) {
			m.Reasoning = String(value)
		}
	}
	return m
}

func isString(value json.RawMessage) bool { return len(value) > 0 && value[0] == '"' }

func isNull(value json.RawMessage) bool { return len(value) == 0 || value[0] == 'n' }

// optional reads a string that may be null or absent.
func (d *decoder) optional(value json.RawMessage, field string) *string {
	if isNull(value) {
		return nil
	}
	if !isString(value) {
		d.wrong("wrong_type", field, "This must be a string.")
		return nil
	}
	text := String(value)
	return &text
}

func (d *decoder) text(value json.RawMessage, field string) string {
	if text := d.optional(value, field); text != nil {
		return *text
	}
	return ""
}

func (d *decoder) content(m *Message) {
	switch content := m.Content; {
	case isNull(content):
	case isString(content):
		m.Plain = true
		m.only[0] = Part{Type: "text", Text: String(content)}
		m.Parts = m.only[:]
	case content[0] == '[':
		for element := range Elements(content) {
			m.Parts = append(m.Parts, d.part(element, len(m.Parts)))
		}
	default:
		d.wrong("invalid_content", "content", "Content must be a string or an array of parts.")
		m.Parts = []Part{{Text: string(content), Raw: content}}
	}
}

func (d *decoder) part(raw json.RawMessage, index int) Part {
	p := Part{Raw: raw}
	field := func(member string) string { return fmt.Sprintf("content[%d]%s", index, member) }
	if raw[0] != '{' {
		d.wrong("invalid_content", field(""), `A part must be an object with a type, such as {"type": "text", "text": "…"}.`)
		return p
	}
	var kind, text, refusal json.RawMessage
	for quoted, value := range membersOf(raw) {
		switch string(nameOf(quoted)) {
		case "type":
			kind = value
		case "text":
			text = value
		case "refusal":
			refusal = value
		}
	}
	for _, m := range []Member{{".type", kind}, {".text", text}, {".refusal", refusal}} {
		if !isNull(m.Value) && !isString(m.Value) {
			d.wrong("invalid_content", field(m.Name), "This must be a string.")
			return p
		}
	}
	p.Type = d.text(kind, "")
	switch p.Type {
	case "":
		d.wrong("invalid_content", field(".type"), "A part needs a type, such as text or image_url.")
	case "refusal":
		p.Text = d.text(refusal, "")
	case "text":
		p.Text = d.text(text, "")
	}
	return p
}

// calls reads tool calls. Where they can't be read, all that stands there is
// one call's arguments, so that nothing is lost to a reader.
func (d *decoder) calls(raw json.RawMessage) (calls []Call, there bool) {
	if isNull(raw) {
		return nil, false
	}
	if raw[0] != '[' {
		d.wrong("wrong_type", "tool_calls", "This must be an array of tool calls.")
		return []Call{{Arguments: string(raw)}}, true
	}
	for element := range Elements(raw) {
		field := fmt.Sprintf("tool_calls[%d]", len(calls))
		if element[0] != '{' {
			d.wrong("wrong_type", field, "A tool call must be an object.")
			calls = append(calls, Call{Arguments: string(element)})
			continue
		}
		calls = append(calls, d.call(element, field))
	}
	return calls, true
}

func (d *decoder) call(raw json.RawMessage, field string) (c Call) {
	for quoted, value := range membersOf(raw) {
		switch string(nameOf(quoted)) {
		case "id":
			c.ID = d.text(value, field+".id")
		case "type":
			d.text(value, field+".type")
		case "function":
			if name, arguments := d.called(value, field+".function", "arguments"); c.Name == "" || name != "" {
				c.Name, c.Arguments, c.Custom = name, arguments, false
			}
		case "custom":
			if name, input := d.called(value, field+".custom", "input"); c.Name == "" {
				c.Name, c.Arguments, c.Custom = name, input, name != ""
			}
		}
	}
	return c
}

// called reads the name of a function or custom tool, and what it is called
// with.
func (d *decoder) called(raw json.RawMessage, field, with string) (name, arguments string) {
	if isNull(raw) {
		return "", ""
	}
	if raw[0] != '{' {
		d.wrong("wrong_type", field, "This must be an object.")
		return "", ""
	}
	for quoted, value := range membersOf(raw) {
		switch member := string(nameOf(quoted)); member {
		case "name":
			name = d.text(value, field+".name")
		case with:
			arguments = d.text(value, field+"."+with)
		}
	}
	return name, arguments
}

// A CallPiece is a piece of a tool call, as the stream of an answer has it, or a whole
// call.
type CallPiece struct {
	Index  int    // of the call; -1 where the piece has none
	ID     string // "" for none, as is Name
	Name   string
	Text   string // more of the arguments, or of a custom tool's input
	Custom bool   // the call is one of a custom tool
}

// ReadCallPiece reads a piece of a call. It is not ok if that is none.
func ReadCallPiece(raw json.RawMessage) (p CallPiece, ok bool) {
	type called struct{ Name, Arguments, Input string }
	var given struct {
		Index    *int
		ID       string
		Function called
		Custom   *called
	}
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &given) != nil {
		return p, false
	}
	f := given.Function
	p = CallPiece{Index: -1, ID: given.ID, Name: withoutNUL(f.Name), Text: withoutNUL(f.Arguments)}
	if c := given.Custom; c != nil && f == (called{}) {
		p.Name, p.Text, p.Custom = withoutNUL(c.Name), withoutNUL(c.Input), true
	}
	if given.Index != nil {
		p.Index = *given.Index
	}
	return p, true
}

// CustomInput returns the text that the arguments of a function hand over to a custom tool,
// as which the function was offered: its member input, or all of the arguments where the
// model wrote no such object.
func CustomInput(arguments string) string {
	var a struct{ Input *string }
	if json.Unmarshal([]byte(arguments), &a) != nil || a.Input == nil {
		return arguments
	}
	return *a.Input
}

func withoutNUL(s string) string { return strings.ReplaceAll(s, "\x00", "") }

// CallIDs returns the ids of the calls that a stored message makes, and the id of
// the call that it answers. It reads these members alone, because every context
// asks for them. stored is a valid JSON object.
func CallIDs(stored json.RawMessage) (makes []string, answers string) {
	for quoted, value := range membersOf(stored) {
		switch string(nameOf(quoted)) {
		case "tool_call_id":
			answers = new(decoder).text(value, "")
		case "tool_calls":
			makes = nil
			for _, call := range ReadCalls(value) {
				makes = append(makes, call.ID)
			}
		}
	}
	return makes, answers
}

// ReadCalls reads stored tool calls, which are valid JSON.
func ReadCalls(stored json.RawMessage) []Call {
	calls, _ := new(decoder).calls(stored)
	return calls
}
