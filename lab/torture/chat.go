package torture

import (
	"encoding/json"
	"fmt"
)

// A chatMessage is a chat-completions message, as a model gets it.
type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []chatCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

// A chatCall is a tool call of a message.
type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func sameCalls(got []chatCall, want []call) bool {
	if len(got) != len(want) {
		return false
	}
	for i, g := range got {
		if g.ID != want[i].ID || g.Type != "function" || g.Function.Name != want[i].Name || g.Function.Arguments != want[i].Arguments {
			return false
		}
	}
	return true
}

// body is the message's own part of a request that appends it.
func (m *message) body() map[string]any {
	b := map[string]any{"id": m.id, "role": m.role, "content": m.content}
	if len(m.calls) > 0 {
		calls := make([]chatCall, len(m.calls))
		for i, c := range m.calls {
			calls[i].ID, calls[i].Type, calls[i].Function.Name, calls[i].Function.Arguments = c.ID, "function", c.Name, c.Arguments
		}
		b["tool_calls"] = calls
	}
	if m.answers != "" {
		b["tool_call_id"] = m.answers
	}
	if m.pinned {
		b["pinned"] = true
	}
	if m.reasoning != "" {
		b["reasoning"] = m.reasoning
	}
	if m.metadata != "{}" {
		b["metadata"] = json.RawMessage(m.metadata)
	}
	return b
}

// checkChat tells what a strict chat-completions endpoint has against messages,
// "" for nothing: each call of an assistant message is answered right after it,
// once, and nothing else is answered. At the end of a context calls may be
// pending. It also counts the calls that are answered.
func checkChat(messages []chatMessage, pending bool) (pairs int, wrong string) {
	open := map[string]bool{}
	for i, m := range messages {
		switch m.Role {
		case "system", "developer", "user", "assistant", "tool":
		default:
			return pairs, fmt.Sprintf("message %d has the role %q", i, m.Role)
		}
		if len(m.ToolCalls) > 0 && m.Role != "assistant" {
			return pairs, fmt.Sprintf("message %d calls tools as %s", i, m.Role)
		}
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return pairs, fmt.Sprintf("message %d answers the call %q, which isn't open", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			pairs++
			continue
		}
		if len(open) > 0 {
			return pairs, fmt.Sprintf("message %d comes before the results of %v", i, open)
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 && !pending {
		return pairs, fmt.Sprintf("the calls %v have no result", open)
	}
	return pairs, ""
}
