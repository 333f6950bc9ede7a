package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"
)

// Encode writes a message that a program made: role, content, tool calls, the
// call that it answers, name and refusal. Parts that were read keep their bytes.
// A content of one text part is written as a string. Strings are written as
// encoding/json writes them, except that <, > and & stay as they are.
func (m *Message) Encode() json.RawMessage {
	size := 100
	for _, p := range m.Parts {
		size += len(p.Raw) + QuotedLen(p.Text) + 30
	}
	out := AppendString(append(make([]byte, 0, size), `{"role":`...), string(m.Role))
	out = m.appendContent(append(out, `,"content":`...))
	if len(m.Calls) > 0 {
		out = append(append(out, `,"tool_calls":`...), EncodeCalls(m.Calls)...)
	}
	for _, o := range []struct {
		name  string
		value *string
	}{{"tool_call_id", m.CallID}, {"name", m.Name}, {"refusal", m.Refusal}} {
		if o.value != nil {
			out = AppendString(append(out, `,"`+o.name+`":`...), *o.value)
		}
	}
	return append(out, '}')
}

// Encoded returns the message as Read returns what Encode writes, with its Reasoning. A message
// whose parts were made as text is not read again, unless it has a NUL or invalid UTF-8.
func (m *Message) Encoded() *Message {
	raw := m.Encode()
	if slices.ContainsFunc(m.Parts, func(p Part) bool { return p.Raw != nil || !p.IsText() }) || bytes.Contains(raw, []byte(`\u0000`)) || bytes.Contains(raw, []byte(`\ufffd`)) {
		out, err := Parse(raw)
		if err != nil {
			out = Read(raw)
		}
		out.Reasoning = m.Reasoning
		return out
	}
	out := &Message{Raw: raw, Role: m.Role, Content: MemberOf(raw, "content"), Calls: m.Calls, CallID: m.CallID, Name: m.Name, Refusal: m.Refusal, Reasoning: m.Reasoning, hasCalls: len(m.Calls) > 0}
	switch out.Content[0] {
	case '"':
		out.Plain, out.only[0] = true, TextPart(m.Text())
		out.Parts = out.only[:]
	case '[':
		for element := range Elements(out.Content) {
			p := m.Parts[len(out.Parts)]
			out.Parts = append(out.Parts, Part{p.Type, p.Text, element})
		}
	}
	var d decoder
	out.check(&d)
	out.checked = d.err == nil
	return out
}

func (m *Message) appendContent(out []byte) []byte {
	switch {
	case len(m.Parts) == 1 && m.Parts[0].Type == "text":
		return m.Parts[0].appendText(out)
	case len(m.Parts) > 0:
		for i, p := range m.Parts {
			out = p.appendTo(append(out, "[,"[min(i, 1)]))
		}
		return append(out, ']')
	case m.Role == Tool:
		return append(out, `""`...)
	}
	return append(out, "null"...)
}

// TextPart returns a part of text.
func TextPart(text string) Part { return Part{Type: "text", Text: text} }

// Encode writes a part. A part that was read keeps its bytes, without white
// space.
func (p Part) Encode() json.RawMessage { return p.appendTo(nil) }

func (p Part) appendTo(out []byte) []byte {
	if p.Raw != nil {
		compact := bytes.NewBuffer(out)
		_ = json.Compact(compact, p.Raw) // valid, as all that is read
		return compact.Bytes()
	}
	member := "text"
	if p.Type == "refusal" {
		member = p.Type
	}
	out = AppendString(append(out, `{"type":`...), p.Type)
	return append(AppendString(append(out, `,"`+member+`":`...), p.Text), '}')
}

// appendText writes the text of a text part, by its own bytes where it has them.
func (p Part) appendText(out []byte) []byte {
	if p.Raw != nil {
		if text := MemberOf(p.Raw, "text"); isString(text) {
			return append(out, text...)
		}
	}
	return AppendString(out, p.Text)
}

// EncodeCalls writes calls as the value of the member tool_calls.
func EncodeCalls(calls []Call) json.RawMessage {
	var out []byte
	for i, c := range calls {
		kind, with := `,"type":"function","function":{"name":`, `,"arguments":`
		if c.Custom {
			kind, with = `,"type":"custom","custom":{"name":`, `,"input":`
		}
		out = AppendString(append(append(out, "[,"[min(i, 1)]), `{"id":`...), c.ID)
		out = AppendString(append(out, kind...), c.Name)
		out = append(AppendString(append(out, with...), c.Arguments), `}}`...)
	}
	return append(out, ']')
}

// Marshal is json.Marshal that leaves <, > and & as they are.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// MustMarshal is Marshal of what always encodes, such as texts, numbers, and JSON that was
// read. It panics over anything else.
func MustMarshal(v any) json.RawMessage {
	raw, err := Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("chat.MustMarshal(%T): %v", v, err))
	}
	return raw
}

// AppendArray appends a JSON array of elements, as they stand.
func AppendArray(dst []byte, elements []json.RawMessage) []byte {
	dst = append(dst, '[')
	for i, e := range elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, e...)
	}
	return append(dst, ']')
}

// AppendString appends s as JSON.
func AppendString(dst []byte, s string) []byte {
	dst = append(slices.Grow(dst, QuotedLen(s)), '"')
	for plain, escaped := range escapes(s) {
		dst = append(append(dst, plain...), escaped...)
	}
	return append(dst, '"')
}

// QuotedLen returns how many bytes a string takes in JSON, its quotes included.
func QuotedLen(s string) int {
	size := 2
	for plain, escaped := range escapes(s) {
		size += len(plain) + len(escaped)
	}
	return size
}

// escapes takes s apart: text that stands in JSON as it is, and what the
// character behind it is written as.
func escapes(s string) iter.Seq2[string, string] {
	return func(yield func(plain, escaped string) bool) {
		start := 0
		for i := 0; i < len(s); {
			escaped, width := "", 1
			switch c := s[i]; {
			case c >= utf8.RuneSelf:
				var r rune
				switch r, width = utf8.DecodeRuneInString(s[i:]); {
				case r == utf8.RuneError && width == 1:
					escaped = `\ufffd`
				case r == '\u2028' || r == '\u2029':
					escaped = fmt.Sprintf(`\u%04x`, r)
				}
			case c >= ' ' && c != '"' && c != '\\':
			default:
				escaped = asciiEscapes[c]
			}
			if escaped != "" {
				if !yield(s[start:i], escaped) {
					return
				}
				start = i + width
			}
			i += width
		}
		yield(s[start:], "")
	}
}

// asciiEscapes are what encoding/json writes for the characters of ASCII that it
// escapes in any case.
var asciiEscapes = func() (all [utf8.RuneSelf]string) {
	for c := range all {
		quoted, _ := json.Marshal(string(rune(c))) // a string always can be written
		all[c] = string(quoted[1 : len(quoted)-1])
	}
	return all
}()
