package openai

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/transfer/format"
)

// parseChat reads a request for a chat completion.
func parseChat(body []byte) (*wire.Request, error) {
	c := converter{in: format.NewInput(context.Background(), bytes.NewReader(nil), nil), answered: map[string]bool{}}
	c.in.Begin(len(body))
	c.in.At = int64(len(body))
	req, err := wire.ParseChat(body, c.convert)
	if c.dense {
		err = fault.New(fault.Invalid, sdk.CodeValue, "messages", "Too many messages have parts of other APIs, for the bytes of the request. Send calls as tool_calls, and results as messages of role tool.")
	}
	return req, err
}

// A converter converts messages with parts of other APIs, such as Anthropic's tool_use,
// Gemini's functionCall and Bedrock's toolUse. The conversion is that of imports, within
// their bounds for a file of the request's bytes.
type converter struct {
	in       *format.Input
	dense    bool            // the request is beyond the bounds
	seen     int             // of the messages before
	calls    []string        // ids of those that the last message but results makes
	answered map[string]bool // ids that the results behind it have
}

// look takes note of what a message calls or answers.
func (c *converter) look(m *chat.Message) {
	if m.Role == chat.Tool {
		c.answered[m.Answers()] = true
		return
	}
	c.calls, c.answered = nil, map[string]bool{}
	for _, call := range m.Calls {
		c.calls = append(c.calls, call.ID)
	}
}

// open is the first call without a result; "" for none.
func (c *converter) open() string {
	for len(c.calls) > 0 && c.answered[c.calls[0]] {
		c.calls = c.calls[1:]
	}
	return append(c.calls, "")[0]
}

// convert gives the messages that a message stands for. It is nil where an import would
// leave something out, or change it. A result without an id answers the first open call of
// the messages before. The pictures of a user's results stand behind the rest.
func (c *converter) convert(m *chat.Message, before []wire.Entry) (all []*chat.Message) {
	for ; c.seen < len(before); c.seen++ {
		c.look(before[c.seen].Message)
	}
	said := c.in.Conversation()
	t := said.Turn("", m.Role)
	var media []chat.Part
	if m.Role == chat.User {
		said.Media = func(p chat.Part) { media = append(media, p) }
	}
	t.Content(m.Content)
	for _, p := range media {
		t.Part(p)
	}
	c.dense = said.TooDense() != ""
	noted := slices.ContainsFunc(said.Notes, func(n format.Note) bool { return n.Kind != format.KindHidden })
	if noted || c.dense || !t.Says() && len(m.Calls) == 0 && m.Refusal == nil {
		return nil
	}
	t.Add()
	var own *chat.Message // the last that m itself says
	for _, made := range said.Messages {
		one := chat.Read(made.Body)
		one.Reasoning = made.Reasoning
		if one.Role == m.Role {
			own, one.Name = one, m.Name
			one.Reasoning = cmp.Or(one.Reasoning, m.Reasoning)
		}
		if one.Role == chat.Tool && one.Answers() == "" {
			id := c.open()
			if one.CallID = &id; m.Role == chat.Tool && m.CallID != nil {
				one.CallID = m.CallID
			}
		}
		if one.Role == chat.Tool {
			c.look(one)
		}
		all = append(all, one)
	}
	if m.Refusal != nil || len(m.Calls) > 0 { // which stand beside the parts
		if own == nil {
			return nil
		}
		own.Refusal = m.Refusal
		own.Calls = append(own.Calls, slices.DeleteFunc(slices.Clone(m.Calls), func(beside chat.Call) bool {
			return slices.ContainsFunc(own.Calls, func(call chat.Call) bool { return call.ID == beside.ID })
		})...)
	}
	for i, one := range all {
		parsed, err := chat.Parse(one.Encode())
		if err != nil {
			return nil
		}
		all[i], parsed.Reasoning = parsed, one.Reasoning
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
