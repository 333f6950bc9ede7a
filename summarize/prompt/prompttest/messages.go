// Package prompttest has what the tests of prompts and digests share: messages,
// hostile and real ones, and a strict reader of prompts.
package prompttest

import (
	"encoding/json"

	"github.com/coppice-chat/coppice/tree"
)

// Nonce is the nonce of fences in tests.
const Nonce = "7f3a9c0d1e2b4a58"

// Message makes a chat-completions message object of its members.
func Message(role tree.Role, members map[string]any) tree.Message {
	all := map[string]any{"role": role}
	for name, value := range members {
		all[name] = value
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return tree.Message{Role: role, Body: raw, Tokens: len(raw) / 4}
}

// UserSays makes a user's message.
func UserSays(text string) tree.Message {
	return Message(tree.RoleUser, map[string]any{"content": text})
}

// AssistantSays makes an assistant's message.
func AssistantSays(text string) tree.Message {
	return Message(tree.RoleAssistant, map[string]any{"content": text})
}

// AssistantCalls makes a message with one call whose id is the tool's name.
func AssistantCalls(tool, arguments string) tree.Message {
	return Message(tree.RoleAssistant, map[string]any{"content": nil, "tool_calls": []any{
		map[string]any{"id": tool, "type": "function", "function": map[string]any{"name": tool, "arguments": arguments}},
	}})
}

// ToolSays makes a tool's result.
func ToolSays(tool, text string) tree.Message {
	return Message(tree.RoleTool, map[string]any{"tool_call_id": tool, "content": text})
}

// Quarters counts a token for every four bytes, which is quick and monotonic.
type Quarters struct{}

// Count implements tokens.Counter.
func (Quarters) Count(text string) int { return (len(text) + 3) / 4 }
