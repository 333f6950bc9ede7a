package wire

import (
	"encoding/json"

	"github.com/coppice-chat/coppice/chat"
)

// Statuses of items.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
)

// An Item is an item of the Responses API.
type Item interface{ ItemID() string }

// Items of the Responses API, with the members that clients demand.
type (
	// A MessageItem is a message of a user, an assistant, a system or a
	// developer.
	MessageItem struct {
		Type    string `json:"type"`
		ID      string `json:"id"`
		Role    string `json:"role"`
		Status  string `json:"status"`
		Phase   string `json:"phase,omitempty"`
		Content []any  `json:"content"`

		// Grafted says which other branch brought the text; nil for none. OpenAI has no such member.
		Grafted json.RawMessage `json:"grafted,omitempty"`
	}

	// A ReasoningItem is the reasoning that a model showed.
	ReasoningItem struct {
		Type    string     `json:"type"`
		ID      string     `json:"id"`
		Summary []struct{} `json:"summary"`
		Content []textPart `json:"content,omitempty"`
	}

	// A CallItem is a call of a function, of a custom tool or of a search of tools.
	CallItem struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		CallID    string          `json:"call_id"`
		Namespace string          `json:"namespace,omitempty"`
		Name      string          `json:"name,omitempty"`
		Arguments json.RawMessage `json:"arguments,omitempty"` // of a function a string, of a search an object
		Input     *string         `json:"input,omitempty"`     // of a custom tool
		Execution string          `json:"execution,omitempty"` // of a search
		Status    string          `json:"status"`
	}

	// A CallOutputItem is the result of a call.
	CallOutputItem struct {
		Type   string          `json:"type"`
		ID     string          `json:"id"`
		CallID string          `json:"call_id"`
		Output json.RawMessage `json:"output"` // a string or parts
		Status string          `json:"status"`
	}

	// A CompactionItem stands for the older part of a branch.
	CompactionItem struct {
		Type    string `json:"type"`
		ID      string `json:"id"`
		Content string `json:"encrypted_content"`
	}
)

// ItemID returns the item's id.
func (i MessageItem) ItemID() string    { return i.ID }
func (i ReasoningItem) ItemID() string  { return i.ID }
func (i CallItem) ItemID() string       { return i.ID }
func (i CallOutputItem) ItemID() string { return i.ID }
func (i CompactionItem) ItemID() string { return i.ID }

func newMessageItem(n NodeID, role chat.Role, status string) MessageItem {
	return MessageItem{Type: "message", ID: n.item(KindMessage, ordinalSaid), Role: string(role), Status: status, Content: []any{}}
}

func newReasoningItem(n NodeID) ReasoningItem {
	return ReasoningItem{Type: "reasoning", ID: n.item(KindReasoning, ordinalReasoning), Summary: []struct{}{}}
}

func newCallItem(n NodeID, index int, call chat.Call, names toolNames, status string) CallItem {
	known := names.of(call.Name)
	item := CallItem{Type: "function_call", ID: n.item(KindCall, ordinalCalls+index), CallID: call.ID, Namespace: known.space, Name: known.name, Status: status}
	switch {
	case call.Custom || known.kind == toolCustom:
		input := call.Arguments
		if !call.Custom { // stored before custom calls were
			input = chat.CustomInput(input)
		}
		item.Type, item.Input = "custom_tool_call", &input
	case known.kind == toolSearch:
		item.Type, item.Name, item.Execution, item.Arguments = "tool_search_call", "", "client", json.RawMessage("{}")
		if chat.CheckObject([]byte(call.Arguments), "search") == nil {
			item.Arguments = json.RawMessage(call.Arguments)
		}
	default:
		item.Arguments = chat.MustMarshal(call.Arguments)
	}
	return item
}

// ItemsOf returns the items of a message. An assistant's message has items for its
// reasoning, text and calls; any other message is one item. The note is that of the
// Entry from which the message was stored.
func ItemsOf(n NodeID, m *chat.Message, note Note) []Item {
	return itemsOf(n, m, note, statusCompleted, nil)
}

// Items returns the items of a stored message, as its response has them where it is the
// answer of one.
func (t Turn) Items(end End, note Note) []Item {
	return itemsOf(t.Node, end.Message, note, end.lastItem(), t.Echo.names())
}

// itemsOf is ItemsOf for a response, whose last item has the status that is
// given, and whose tools may stand in namespaces.
func itemsOf(n NodeID, m *chat.Message, note Note, status string, names toolNames) (items []Item) {
	if m.Role == chat.Tool {
		kind := "function_call_output"
		if note.Custom {
			kind = "custom_tool_call_output"
		}
		return []Item{CallOutputItem{kind, n.item(KindCallOutput, ordinalSaid), m.Answers(), callOutput(m), statusCompleted}}
	}
	item := newMessageItem(n, m.Role, statusCompleted)
	if item.Role == "" { // of a message that came from elsewhere
		item.Role = string(chat.User)
	}
	for _, p := range m.Parts {
		if m.Role == chat.Assistant && p.Type == "text" && p.Text == "" {
			continue // beside calls, where other clients have null
		}
		item.Content = append(item.Content, itemPart(p, m.Role))
	}
	if m.Refusal != nil && *m.Refusal != "" {
		item.Content = append(item.Content, refusalPart{"refusal", *m.Refusal})
	}
	if m.Role != chat.Assistant {
		return []Item{item}
	}
	if m.Reasoning != "" {
		r := newReasoningItem(n)
		r.Content = []textPart{{"reasoning_text", m.Reasoning}}
		items = append(items, r)
	}
	if len(item.Content) > 0 {
		item.Phase = note.Phase
		if len(m.Calls) == 0 {
			item.Status = status
		}
		items = append(items, item)
	}
	for i, call := range m.Calls {
		of := statusCompleted
		if i == len(m.Calls)-1 {
			of = status
		}
		items = append(items, newCallItem(n, i, call, names, of))
	}
	return items
}

// callOutput is the result of a call as its item has it.
func callOutput(m *chat.Message) json.RawMessage {
	if m.Plain || len(m.Parts) == 0 {
		return chat.MustMarshal(m.Text())
	}
	var parts []any
	for _, p := range m.Parts {
		parts = append(parts, itemPart(p, m.Role))
	}
	return chat.MustMarshal(parts)
}
