package openai

import (
	"slices"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/transfer/format"
)

// parseChat reads a request for a chat completion.
func parseChat(body []byte) (*wire.Request, error) { return wire.ParseChat(body, converted) }

// converted gives the messages that a message with parts of other APIs stands for, such as
// Anthropic's tool_use, Gemini's functionCall and Bedrock's toolUse. The conversion is that
// of imports. It is nil where an import would leave something out, or change it. A result
// without an id answers the first open call of the messages before.
func converted(m *chat.Message, before []wire.Entry) (all []*chat.Message) {
	var c format.Conversation
	t := c.Turn("", m.Role)
	t.Content(m.Content)
	if slices.ContainsFunc(c.Notes, func(n format.Note) bool { return n.Kind != format.KindHidden }) || !t.Says() {
		return nil
	}
	var calls []string // that are open
	for _, e := range before {
		b := e.Message
		if b.Role != chat.Tool {
			calls = nil
		}
		for _, call := range b.Calls {
			calls = append(calls, call.ID)
		}
		calls = slices.DeleteFunc(calls, func(id string) bool { return id == b.Answers() })
	}
	t.Add()
	for _, made := range c.Messages {
		one := chat.Read(made.Body)
		if one.Role == chat.Tool && one.Answers() == "" && len(calls) > 0 {
			one.CallID, calls = &calls[0], calls[1:]
		}
		one, err := chat.Parse(one.Encode())
		if err != nil {
			return nil
		}
		one.Reasoning = made.Reasoning
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b *chat.Message) int { // a user's message may have results behind its text
		return rank(m, a) - rank(m, b)
	})
	return all
}

// rank is 0 of a result within a user's message.
func rank(of, m *chat.Message) int {
	if of.Role == chat.User && m.Role != chat.Tool {
		return 1
	}
	return 0
}
