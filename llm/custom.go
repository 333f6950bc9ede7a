package llm

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
)

// A custom tool takes a text, for which it may have a grammar. A model that knows no
// custom tools gets each as a function with one string, input. What that model calls is
// a call of the custom tool again, before anybody sees it.

var customMark = []byte(`"custom"`)

// hasCustom tells whether a request may have custom tools, or calls of them.
func hasCustom(req Request) bool {
	has := func(raw json.RawMessage) bool { return bytes.Contains(raw, customMark) }
	return has(req.Extra["tools"]) || slices.ContainsFunc(req.Messages, has)
}

// asFunctions gives a request with functions in the place of custom tools, and the names
// of those.
func asFunctions(req Request) (_ Request, names map[string]bool) {
	if !hasCustom(req) {
		return req, nil
	}
	names = map[string]bool{}
	extra := maps.Clone(req.Extra)
	if tools := extra["tools"]; json.Valid(tools) {
		extra["tools"] = eachElement(tools, func(tool json.RawMessage) json.RawMessage {
			if custom := chat.MemberOf(tool, "custom"); isObject(string(custom)) {
				names[text(chat.MemberOf(custom, "name"))] = true
				tool = chat.WithMember(tool, "custom", chat.WithMember(custom, "format", formatOf(custom)))
			}
			return asFunction(tool)
		})
	}
	if choice := extra["tool_choice"]; json.Valid(choice) && choice[0] == '{' {
		if allowed := chat.MemberOf(choice, "allowed_tools"); isObject(string(allowed)) {
			tools := eachElement(chat.MemberOf(allowed, "tools"), asFunction)
			choice = chat.WithMember(choice, "allowed_tools", chat.WithMember(allowed, "tools", tools))
		}
		extra["tool_choice"] = asFunction(choice)
	}
	messages := slices.Clone(req.Messages)
	for i, m := range messages {
		if bytes.Contains(m, customMark) && (req.Checked || json.Valid(m)) {
			if calls := chat.MemberOf(m, "tool_calls"); calls != nil {
				messages[i] = chat.WithMember(m, "tool_calls", eachElement(calls, asFunction))
			}
		}
	}
	req.Extra, req.Messages = extra, messages
	return req, names
}

// eachElement gives an array with what f makes of its elements. What is no array stays.
func eachElement(array json.RawMessage, f func(json.RawMessage) json.RawMessage) json.RawMessage {
	if len(array) == 0 || array[0] != '[' {
		return array
	}
	all := []json.RawMessage{}
	for element := range chat.Elements(array) {
		all = append(all, f(element))
	}
	raw, _ := chat.Marshal(all) // which were JSON
	return raw
}

// asFunction gives a custom tool, a call of one or a choice of one as that of a function.
func asFunction(raw json.RawMessage) json.RawMessage {
	custom := chat.MemberOf(raw, "custom")
	if !isObject(string(custom)) {
		return raw
	}
	inner := chat.Members(custom)
	for i, m := range inner {
		switch m.Name {
		case "input":
			arguments := chat.AppendObject(nil, []chat.Member{m})
			inner[i] = chat.Member{Name: "arguments", Value: chat.AppendString(nil, string(arguments))}
		case "format":
			inner[i].Name = "parameters"
		}
	}
	members := chat.Members(raw)
	for i := range members {
		switch m := &members[i]; m.Name {
		case "type":
			m.Value = json.RawMessage(`"function"`)
		case "custom":
			m.Name, m.Value = "function", chat.AppendObject(nil, inner)
		}
	}
	return chat.AppendObject(nil, members)
}

// formatOf is the schema of a custom tool's text, which describes its grammar.
func formatOf(custom json.RawMessage) json.RawMessage {
	says := "The whole input of the tool, as plain text."
	var tool struct {
		Format struct {
			Grammar struct{ Syntax, Definition string }
		}
	}
	if g := &tool.Format.Grammar; json.Unmarshal(custom, &tool) == nil && g.Definition != "" {
		says += " It must match this " + g.Syntax + " grammar:\n" + g.Definition
	}
	return json.RawMessage(`{"type":"object","properties":{"input":{"type":"string","description":` + string(chat.AppendString(nil, says)) +
		`}},"required":["input"],"additionalProperties":false}`)
}

// asCustom makes a piece of a function's call one of the custom tool for which the
// function stands. name and arguments are those of the piece.
func (t *toolCall) asCustom(members map[string]json.RawMessage, name, arguments string) {
	custom := map[string]string{}
	if t.text == nil {
		t.text = &inputText{}
		custom["name"] = withoutNUL(name)
		members["type"] = json.RawMessage(customMark)
	}
	custom["input"] = t.text.add(arguments)
	delete(members, "function")
	members["custom"], _ = chat.Marshal(custom) // strings always encode
}

// An inputText is the text in the arguments of a function that stands for a custom tool,
// as far as they have come.
type inputText struct {
	arguments []byte
	read      int // bytes of them; 0 before the text begins
	closed    bool
	all       strings.Builder // the text
}

var beginsInput = regexp.MustCompile(`^\s*\{\s*"input"\s*:\s*"`)

// add takes in a piece of the arguments, and gives the piece of the text.
func (t *inputText) add(arguments string) string {
	t.arguments = append(t.arguments, arguments...)
	if t.read == 0 {
		t.read = len(beginsInput.Find(t.arguments))
	}
	return t.more(false)
}

// end gives what is left of the text, of arguments that are whole. Those that don't begin
// with it are read at once.
func (t *inputText) end() string {
	if t.read == 0 {
		text := withoutNUL(chat.CustomInput(string(t.arguments)))
		t.read, t.closed = len(t.arguments), true
		t.all.WriteString(text)
		return text
	}
	return t.more(true)
}

// more reads on up to the end of the text, or up to an escape of which more must come.
func (t *inputText) more(whole bool) string {
	var piece []byte
	for t.read > 0 && t.read < len(t.arguments) && !t.closed {
		rest := t.arguments[t.read:]
		size := 1
		switch rest[0] {
		case '"':
			t.closed = true
			continue
		case '\\':
			size = escapeSize(rest)
		}
		if size > len(rest) && !whole {
			break
		}
		size = min(size, len(rest))
		piece = append(piece, unescaped(rest[:size])...)
		t.read += size
	}
	text := withoutNUL(string(piece))
	t.all.WriteString(text)
	return text
}

// escapeSize is how many bytes the escape has with which a text begins. A character of two
// escapes is one.
func escapeSize(text []byte) int {
	switch {
	case len(text) < 2 || text[1] != 'u':
		return 2
	case len(text) < 4 || !strings.ContainsRune("dD", rune(text[2])) || !strings.ContainsRune("89abAB", rune(text[3])):
		return 6
	}
	if next := text[min(len(text), 6):]; strings.HasPrefix(`\u`, string(next[:min(len(next), 2)])) {
		return 12
	}
	return 6
}

// unescaped is a byte, or an escape of a JSON string, as text. What is no escape stays.
func unescaped(raw []byte) string {
	var s string
	if raw[0] == '\\' && json.Unmarshal(slices.Concat([]byte(`"`), raw, []byte(`"`)), &s) == nil {
		return s
	}
	return string(raw)
}
