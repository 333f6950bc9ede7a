package wire

import (
	"cmp"
	"encoding/json"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
)

// An Item is an item of the Responses API, with the members that clients demand.
type Item struct {
	ID  string
	Raw json.RawMessage
}

// MarshalJSON returns the item as clients get it.
func (i Item) MarshalJSON() ([]byte, error) { return i.Raw, nil }

func newItem(kind, id string, members ...any) Item {
	return Item{id, sdk.JSON(append([]any{"type", kind, "id", id}, members...)...)}
}

// messageItem is a message of a user, an assistant, a system or a developer.
func messageItem(n NodeID, role chat.Role, status Status, phase string, content ...json.RawMessage) Item {
	return newItem("message", n.item(KindMessage, ordinalSaid), "role", role, "status", status, "phase?", phase, "content", chat.AppendArray(nil, content))
}

// reasoningItem is the reasoning that a model showed; without content as it begins.
func reasoningItem(n NodeID, content ...json.RawMessage) Item {
	return newItem("reasoning", n.item(KindReasoning, ordinalReasoning), "summary", noElements, "content?", content)
}

// callItem is a call of a function, of a custom tool or of a search of tools.
func callItem(n NodeID, index int, call chat.Call, names toolNames, status Status) Item {
	known := names.of(call.Name)
	kind, name, with, given, execution := "function_call", known.name, "arguments", any(call.Arguments), ""
	switch {
	case call.Custom || known.kind == toolCustom:
		kind, with = "custom_tool_call", "input"
		if !call.Custom { // stored before custom calls were
			given = chat.CustomInput(call.Arguments)
		}
	case known.kind == toolSearch:
		kind, name, given, execution = "tool_search_call", "", json.RawMessage("{}"), "client"
		if chat.CheckObject([]byte(call.Arguments), "search") == nil {
			given = json.RawMessage(call.Arguments)
		}
	}
	return newItem(kind, n.item(KindCall, ordinalCalls+index), "call_id", call.ID, "namespace?", known.space, "name?", name, with, given, "execution?", execution, "status", status)
}

// ItemsOf returns the items of a message. An assistant's message has items for its
// reasoning, text and calls; any other message is one item. The note is that of the
// Entry from which the message was stored.
func ItemsOf(n NodeID, m *chat.Message, note Note) []Item {
	return Turn{Node: n}.Items(End{Status: Completed, Message: m}, note)
}

// Items returns the items of a stored message, as its response has them where it is the
// answer of one: the last item says how it ended, and tools may stand in namespaces.
func (t Turn) Items(end End, note Note) (items []Item) {
	n, m, names := t.Node, end.Message, t.Echo.names()
	var content []json.RawMessage
	for _, p := range m.Parts {
		if m.Role == chat.Assistant && p.Type == "text" && p.Text == "" {
			continue // beside calls, where other clients have null
		}
		content = append(content, itemPart(p, m.Role))
	}
	if m.Role == chat.Tool {
		kind, output := "function_call_output", chat.AppendArray(nil, content)
		if note.Custom {
			kind = "custom_tool_call_output"
		}
		if m.Plain || len(content) == 0 {
			output = chat.MustMarshal(m.Text())
		}
		return []Item{newItem(kind, n.item(KindCallOutput, ordinalSaid), "call_id", m.Answers(), "output", output, "status", Completed)}
	}
	if m.Refusal != nil && *m.Refusal != "" {
		content = append(content, refusalPart(*m.Refusal))
	}
	if m.Role != chat.Assistant { // of a message that came from elsewhere there may be no role
		return []Item{messageItem(n, cmp.Or(m.Role, chat.User), Completed, "", content...)}
	}
	if m.Reasoning != "" {
		items = append(items, reasoningItem(n, reasoningPart(m.Reasoning)))
	}
	last := func(is bool) Status {
		if is {
			return end.lastItem()
		}
		return Completed
	}
	if len(content) > 0 {
		items = append(items, messageItem(n, m.Role, last(len(m.Calls) == 0), note.Phase, content...))
	}
	for i, call := range m.Calls {
		items = append(items, callItem(n, i, call, names, last(i == len(m.Calls)-1)))
	}
	return items
}
