package wire

import (
	"encoding/json"
	"strings"

	"github.com/coppice-chat/coppice/chat"
)

// A Delta is a piece of an answer that is still streaming. All pieces together
// are the answer.
type Delta struct {
	Reasoning, Text, Refusal string
	Calls                    []json.RawMessage // chat-completions pieces of calls
}

// deltaOf is a stored answer as one piece.
func deltaOf(m *chat.Message) (d Delta) {
	var texts, refused []string
	for _, p := range m.Parts {
		switch p.Type {
		case "text":
			texts = append(texts, p.Text)
		case "refusal":
			refused = append(refused, p.Text)
		}
	}
	if m.Refusal != nil {
		refused = append(refused, *m.Refusal)
	}
	d = Delta{Reasoning: m.Reasoning, Text: strings.Join(texts, "\n"), Refusal: strings.Join(refused, "\n")}
	if len(m.Calls) > 0 {
		for name, value := range chat.EachMember(m.Raw) {
			if string(name) != "tool_calls" || value[0] != '[' {
				continue
			}
			d.Calls = nil // of several members of that name, the last counts
			for call := range chat.Elements(value) {
				d.Calls = append(d.Calls, call)
			}
		}
	}
	return d
}

// A partCall is a call as far as it has come.
type partCall struct {
	id, name  string
	arguments strings.Builder

	begun, named, typed bool // the client was told of it, of its name, of its type
}

func (p *partCall) whole() chat.Call {
	return chat.Call{ID: p.id, Name: p.name, Arguments: p.arguments.String()}
}

// calls put calls together from their pieces.
type calls []*partCall

// A piece is a piece of a call.
type piece struct {
	Index            *int
	ID, Type         string
	Function, Custom *called
}

type called struct{ Name, Arguments, Input string }

// add takes a piece, and gives the number of its call and the arguments that
// came with it. Package llm has numbered the pieces of a stream; a call without a
// number is whole. It is ok unless the piece can't be read; package llm has refused
// such an answer then.
func (c *calls) add(raw json.RawMessage) (at int, arguments string, ok bool) {
	var p piece
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &p) != nil {
		return 0, "", false
	}
	name := ""
	for _, f := range []*called{p.Function, p.Custom} {
		if f != nil {
			name, arguments = name+f.Name, arguments+f.Arguments+f.Input
		}
	}
	name, arguments = withoutNUL(name), withoutNUL(arguments)
	if at = len(*c); p.Index != nil && *p.Index < at {
		at = max(*p.Index, 0)
	} else {
		*c = append(*c, &partCall{})
	}
	call := (*c)[at]
	if call.id == "" {
		call.id = p.ID
	}
	if call.name == "" {
		call.name = name
	}
	call.arguments.WriteString(arguments)
	return at, arguments, true
}

func withoutNUL(s string) string { return strings.ReplaceAll(s, "\x00", "") }
