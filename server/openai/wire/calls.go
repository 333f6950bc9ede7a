package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
)

// deltaOf is a stored answer as one piece.
func deltaOf(m *chat.Message) (d sdk.Delta) {
	d.Reasoning, d.Text = m.Reasoning, m.Text()
	if m.Refusal != nil {
		d.Refusal = *m.Refusal
	}
	if list := chat.MemberOf(m.Raw, "tool_calls"); len(m.Calls) > 0 && list[0] == '[' {
		for call := range chat.Elements(list) {
			if call[0] == '{' {
				d.Calls = append(d.Calls, call)
			}
		}
	}
	return d
}

// A partCall is a call as far as it has come.
type partCall struct {
	chat.Call
	arguments strings.Builder
}

func (p *partCall) whole() chat.Call {
	p.Arguments = p.arguments.String()
	return p.Call
}

// calls put calls together from their pieces.
type calls []*partCall

// add takes a piece, and gives the number of its call and the text that came with it; -1
// for a piece that is none, of which package llm lets none pass. A call without a number
// is whole.
func (c *calls) add(raw json.RawMessage) (at int, text string) {
	p, ok := chat.ReadCallPiece(raw)
	if !ok {
		return -1, ""
	}
	at = p.Index
	if at < 0 || at >= len(*c) {
		at = len(*c)
		*c = append(*c, &partCall{})
	}
	call := (*c)[at]
	call.ID = cmp.Or(call.ID, p.ID)
	if call.Name == "" {
		call.Name, call.Custom = p.Name, p.Custom
	}
	call.arguments.WriteString(p.Text)
	return at, p.Text
}

// NoOutput returns the error of a call without a result.
func NoOutput(call string) error {
	return fault.New(fault.Invalid, reader.CodeValue, "input", "No tool output found for function call %s.", fault.Clip(call))
}

// CheckCalls refuses results of calls that nobody made, and calls that have no
// result before the input goes on. The messages continue a branch on which the
// calls named in pending have no result yet. Calls of the last message may stay
// open.
func CheckCalls(pending []string, messages []*chat.Message) error {
	order, open := pending, map[string]bool{}
	for _, id := range pending {
		open[id] = true
	}
	for _, m := range messages {
		if m.Role == chat.Tool {
			if !open[m.Answers()] {
				return fault.New(fault.Invalid, reader.CodeValue, "input", "No tool call found for function call output with call_id %s.", fault.Clip(m.Answers()))
			}
			delete(open, m.Answers())
			continue
		}
		if i := slices.IndexFunc(order, func(id string) bool { return open[id] }); i >= 0 {
			return NoOutput(order[i])
		}
		order = nil
		for _, call := range m.Calls {
			order, open[call.ID] = append(order, call.ID), true
		}
	}
	return nil
}
