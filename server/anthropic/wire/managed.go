package wire

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
)

// Managed returns the body of a request in which the branch's context stands in the
// place of the client's messages. A message of the context that the client sent stands
// as the client sent it, so that its blocks keep their signatures and marks of the
// cache. The entries are the request's History. All else of the body stays as it is.
func Managed(body []byte, entries []Entry, context []json.RawMessage) []byte {
	sent := map[[sha256.Size]byte][]int{} // of each form, the entries
	for i, e := range entries {
		form := e.Message.Form()
		sent[form] = append(sent[form], i)
	}
	own := make([]int, len(context)) // the entry of each message of the context, and one more; 0 for none
	messages := make([]*chat.Message, len(context))
	for i := len(context) - 1; i >= 0; i-- {
		messages[i] = chat.Read(context[i])
		form := messages[i].Form()
		if at := sent[form]; len(at) > 0 { // of several that say the same, the last one for the last
			own[i], sent[form] = at[len(at)-1]+1, at[:len(at)-1]
		}
	}
	var out turns
	var instructions []json.RawMessage // which stand behind a message of the user's, as History found them
	leading := true
	for i, m := range messages {
		system := m.Role == chat.System || m.Role == chat.Developer
		leading = leading && system
		switch {
		case own[i] > 0 && entries[own[i]-1].Field == "system", leading && own[i] == 0:
			continue // the body's member system has it
		case own[i] > 0 && system:
			instructions = append(instructions, entries[own[i]-1].Blocks...)
			continue
		case own[i] > 0:
			out.add(roleOf(m), entries[own[i]-1].Blocks)
		default:
			out.add(roleOf(m), blocksOf(m))
		}
		if m.Role == chat.User {
			out.add("system", instructions)
			instructions = nil
		}
	}
	out.add("system", instructions)
	members := chat.Members(body)
	for i := range members {
		if members[i].Name == "messages" {
			members[i].Value = out.encode()
		}
	}
	return chat.AppendObject(nil, members)
}

// roleOf is the role of a message on the wire.
func roleOf(m *chat.Message) string {
	if m.Role == chat.Assistant {
		return "assistant"
	}
	return "user"
}

// blocksOf are the blocks of a message of chat completions.
func blocksOf(m *chat.Message) []json.RawMessage {
	text := chat.Shown(m.Parts)
	if m.Role == chat.Tool {
		return []json.RawMessage{sdk.JSON("type", "tool_result", "tool_use_id", m.Answers(), "content", text)}
	}
	return saidBlocks(text, m.Calls)
}

// turns are messages of which no two in a row have one role.
type turns []Message

func (t *turns) add(role string, blocks []json.RawMessage) {
	if len(blocks) == 0 {
		return
	}
	if n := len(*t); n > 0 && (*t)[n-1].Role == role {
		(*t)[n-1].Content = append((*t)[n-1].Content, blocks...)
		return
	}
	*t = append(*t, Message{role, append([]json.RawMessage(nil), blocks...)})
}

func (t turns) encode() json.RawMessage {
	all := make([]json.RawMessage, len(t))
	for i, m := range t {
		all[i] = sdk.JSON("role", m.Role, "content", chat.AppendArray(nil, m.Content))
	}
	return chat.AppendArray(nil, all)
}
