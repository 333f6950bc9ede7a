package llm

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
)

// callBytes is what a call counts for beside its text, so that a server can't
// make calls without end.
const callBytes = 1 << 10

// A toolCall is a call put together from its pieces. Members that this package
// doesn't know are kept, because some providers refuse a call that comes back
// without them (Gemini's thought signatures, for one).
type toolCall struct {
	id, kind string
	function *called
	custom   *called
	other    map[string]json.RawMessage
	index    *int // in the stream; nil if the server doesn't count
}

// called is what a call names and hands over: arguments of a function, or the
// input of a custom tool.
type called struct {
	name  string
	input strings.Builder
}

// addCalls takes in a tool_calls array: in a stream pieces of calls, else
// whole ones. It returns the array with the index of each piece's call.
func (a *answer) addCalls(raw json.RawMessage, whole bool) (json.RawMessage, error) {
	var pieces []json.RawMessage
	if json.Unmarshal(raw, &pieces) != nil {
		return nil, failed(ErrBadResponse, "tool_calls is no array")
	}
	changed := false
	for i, raw := range pieces {
		var p struct {
			Index            *int
			ID, Type         string
			Function, Custom *struct{ Name, Arguments, Input string }
		}
		members := map[string]json.RawMessage{}
		if json.Unmarshal(raw, &p) != nil || json.Unmarshal(raw, &members) != nil {
			return nil, failed(ErrBadResponse, "a tool call can't be read")
		}
		named := p.Function != nil && p.Function.Name != "" || p.Custom != nil && p.Custom.Name != ""
		at, call := a.callOf(p.Index, p.ID, named, whole)
		if p.Index == nil || *p.Index != at {
			members["index"] = json.RawMessage(strconv.Itoa(at))
			pieces[i], _ = marshal(members) // which were JSON
			changed = true
		}
		for _, name := range []string{"index", "id", "type", "function", "custom"} {
			delete(members, name)
		}
		set(&call.id, p.ID)
		set(&call.kind, p.Type)
		if f := p.Function; f != nil {
			call.function = call.function.with(f.Name, f.Arguments)
			a.size += len(f.Arguments)
		}
		if c := p.Custom; c != nil {
			call.custom = call.custom.with(c.Name, c.Input)
			a.size += len(c.Input)
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
		return marshal(pieces)
	}
	return raw, nil
}

// callOf finds the call that a piece belongs to, or begins one; named says
// that the piece names a tool. Not all servers number calls as OpenAI does:
// some leave the index out, some send 0 for all and some another id with each
// piece. So a name with another id begins another call, whatever the index.
func (a *answer) callOf(index *int, id string, named, whole bool) (int, *toolCall) {
	for i := len(a.calls) - 1; i >= 0 && !whole; i-- {
		call := a.calls[i]
		sameIndex := index == nil || call.index == nil || *index == *call.index
		sameID := id == "" || call.id == "" || id == call.id || index != nil && !named
		if sameIndex && sameID {
			return i, call
		}
	}
	call := &toolCall{index: index, other: map[string]json.RawMessage{}}
	a.calls = append(a.calls, call)
	a.size += callBytes
	return len(a.calls) - 1, call
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
	switch {
	case t.id == "":
		return failed(ErrBadResponse, "a tool call has no id, by which its result could name it")
	case (t.function == nil || t.function.name == "") && (t.custom == nil || t.custom.name == ""):
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
	if t.custom != nil {
		members["custom"] = map[string]string{"name": t.custom.name, "input": t.custom.input.String()}
	}
	if t.kind == "" {
		members["type"] = "function"
		if t.custom != nil {
			members["type"] = "custom"
		}
	}
	return marshal(members)
}
