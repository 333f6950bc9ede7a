package llm

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-chat/coppice/chat"
)

// callBytes is what a call counts for beside its text, so that a server can't
// make calls without end.
const callBytes = 1 << 10

// A toolCall is a call put together from its pieces. Its id is the provider's, or
// one that is made here, if the provider gave none or gave it to another call: a
// result names its call by it. Members that this package
// doesn't know are kept, because some providers refuse a call that comes back
// without them (Gemini's thought signatures, for one).
type toolCall struct {
	id, kind string
	given    string // the provider's id; "" for none
	function *called
	custom   *called
	text     *inputText // of a function that stands for a custom tool; nil of any other
	other    map[string]json.RawMessage
	index    *int // in the stream; nil if the server doesn't count
}

// called is what a call names and hands over: arguments of a function, or the
// input of a custom tool.
type called struct {
	name  string
	input strings.Builder
}

// An argument is what a piece hands over: text, or in its place JSON of another kind,
// which is taken as its text.
type argument struct {
	text string
	odd  bool // it was no string
}

// UnmarshalJSON reads any JSON.
func (a *argument) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &a.text)
	}
	if a.odd = true; string(raw) != "null" {
		a.text = string(raw)
	}
	return nil
}

// A callPiece is a piece of a call as it came.
type callPiece struct {
	Index            *int
	ID, Type         string
	Function, Custom *struct {
		Name             string
		Arguments, Input argument
	}
}

// addCalls takes in a tool_calls array: in a stream pieces of calls, else
// whole ones. It returns the array with the index of each piece's call, and with
// ids and arguments as the call has them.
func (a *answer) addCalls(raw json.RawMessage, whole bool) (json.RawMessage, error) {
	var pieces []json.RawMessage
	if json.Unmarshal(raw, &pieces) != nil {
		return nil, failed(ErrBadResponse, "tool_calls is no array")
	}
	changed := false
	for i, raw := range pieces {
		var p callPiece
		members := map[string]json.RawMessage{}
		if json.Unmarshal(raw, &p) != nil || json.Unmarshal(raw, &members) != nil {
			return nil, failed(ErrBadResponse, "a tool call can't be read")
		}
		at, call, begun := a.callOf(p, whole)
		wrong := p.correct(members, at, call, begun)
		if f := p.Function; f != nil && (call.text != nil || a.custom[f.Name]) {
			call.asCustom(members, f.Name, f.Arguments.text)
			wrong = true
		}
		if wrong {
			pieces[i], _ = chat.Marshal(members) // which were JSON
			changed = true
		}
		for _, name := range []string{"index", "id", "type", "function", "custom"} {
			delete(members, name)
		}
		set(&call.given, p.ID)
		set(&call.kind, p.Type)
		if f := p.Function; f != nil {
			call.function = call.function.with(f.Name, f.Arguments.text)
			a.size += len(f.Arguments.text)
		}
		if c := p.Custom; c != nil {
			call.custom = call.custom.with(c.Name, c.Input.text)
			a.size += len(c.Input.text)
		}
		maps.Copy(call.other, members)
		for name, value := range members {
			a.size += len(name) + len(value)
		}
		if a.size > a.limit {
			return nil, errTooMuch
		}
	}
	if changed {
		return chat.Marshal(pieces)
	}
	return raw, nil
}

// correct puts the members of a piece right, and tells whether one was wrong. The first
// piece of a call has the call's id; type and name come once, too, because clients put
// together what comes twice.
func (p callPiece) correct(members map[string]json.RawMessage, at int, call *toolCall, begun bool) (wrong bool) {
	if p.Index == nil || *p.Index != at {
		members["index"], wrong = json.RawMessage(strconv.Itoa(at)), true
	}
	if begun && p.ID != call.id {
		members["id"], wrong = chat.AppendString(nil, call.id), true
	}
	if _, again := members["id"]; again && !begun {
		delete(members, "id")
		wrong = true
	}
	if p.Type != "" && call.kind != "" {
		delete(members, "type")
		wrong = true
	}
	named := call.function != nil && call.function.name != ""
	if f := p.Function; f != nil && (f.Arguments.odd || named && f.Name != "") {
		function := map[string]json.RawMessage{}
		_ = json.Unmarshal(members["function"], &function) // which was read before
		if function["arguments"] = chat.AppendString(nil, f.Arguments.text); named {
			delete(function, "name")
		}
		members["function"], _ = chat.Marshal(function)
		wrong = true
	}
	return wrong
}

// callOf finds the call that a piece belongs to, or begins one. Not all servers number
// calls as OpenAI does: some leave the index out, some send 0 for all and some another
// id with each piece. So a name with another id begins another call, whatever the
// index, and so does a name with arguments behind arguments that are whole.
func (a *answer) callOf(p callPiece, whole bool) (at int, call *toolCall, begun bool) {
	named := p.Function != nil && p.Function.Name != "" || p.Custom != nil && p.Custom.Name != ""
	for i := len(a.calls) - 1; i >= 0 && !whole; i-- {
		call := a.calls[i]
		sameIndex := p.Index == nil || call.index == nil || *p.Index == *call.index
		sameID := p.ID == "" || call.given == "" || p.ID == call.given || p.Index != nil && !named
		if sameIndex && sameID && !(p.whole() && call.whole()) {
			return i, call, false
		}
	}
	call = &toolCall{id: p.ID, index: p.Index, other: map[string]json.RawMessage{}}
	if call.id == "" || slices.ContainsFunc(a.calls, func(c *toolCall) bool { return c.id == call.id }) {
		call.id = "call_" + rand.Text()
	}
	a.calls = append(a.calls, call)
	a.size += callBytes
	return len(a.calls) - 1, call, true
}

// whole tells whether a piece is all of a call of a function.
func (p callPiece) whole() bool {
	return p.Function != nil && p.Function.Name != "" && isObject(p.Function.Arguments.text)
}

// whole tells whether a call of a function has all of its arguments.
func (t *toolCall) whole() bool { return t.function != nil && isObject(t.function.input.String()) }

func isObject(text string) bool {
	return strings.HasPrefix(text, "{") && json.Valid([]byte(text))
}

func (c *called) with(name, input string) *called {
	if c == nil {
		c = &called{}
	}
	set(&c.name, withoutNUL(name))
	c.input.WriteString(withoutNUL(input))
	return c
}

// set takes over the first value that says something: servers that repeat a
// name in each piece repeat it whole.
func set(dst *string, value string) {
	if *dst == "" {
		*dst = value
	}
}

// check tells what makes a whole call unfit to be answered.
func (t *toolCall) check() error {
	if (t.function == nil || t.function.name == "") && (t.custom == nil || t.custom.name == "") {
		return failed(ErrBadResponse, "a tool call names no tool")
	}
	return nil
}

// MarshalJSON returns the call in the form that it has in a message.
func (t *toolCall) MarshalJSON() ([]byte, error) {
	members := map[string]any{"id": t.id, "type": t.kind}
	for name, value := range t.other {
		members[name] = value
	}
	if t.function != nil {
		members["function"] = map[string]string{"name": t.function.name, "arguments": t.function.input.String()}
	}
	if t.text != nil {
		delete(members, "function")
		members["type"], members["custom"] = "custom", map[string]string{"name": t.function.name, "input": t.text.all.String()}
	}
	if t.custom != nil {
		members["custom"] = map[string]string{"name": t.custom.name, "input": t.custom.input.String()}
	}
	if t.kind == "" {
		members["type"] = "function"
		if t.custom != nil {
			members["type"] = "custom"
		}
	}
	return chat.Marshal(members)
}
