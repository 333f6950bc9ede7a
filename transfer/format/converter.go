package format

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
)

// A Converter reads the messages of a request, one after the other. It converts those with
// parts of other APIs, such as Anthropic's tool_use, Gemini's functionCall and Bedrock's
// toolUse. The conversion is that of imports, within their bounds for a file of the bytes
// read so far.
type Converter struct {
	// Open gives the calls that have no result yet where the messages go on; nil for none.
	Open func() []string

	in       Input
	begun    bool            // look has seen more than instructions and results
	unseen   []*chat.Message // those read that look has not taken note of
	calls    []string        // ids of those that the last message but results makes
	answered map[string]bool // ids that the results behind it have
}

// Parse is chat.ParseMember of a message that may stand for several in chat completions. It
// refuses parts that no model takes and that can't be converted.
func (c *Converter) Parse(raw json.RawMessage) (all []*chat.Message, err error) {
	c.in.Size, c.in.At = c.in.Size+len(raw), c.in.At+int64(len(raw))
	m, err := chat.ParseMember(raw)
	if err != nil && fault.Of(err).Field == "tool_calls" {
		m, err = chat.ParseMember(withoutEmptyCalls(raw))
	}
	if err == nil {
		err = m.CheckParts()
	}
	switch {
	case err == nil:
		all = []*chat.Message{m}
		c.unseen = append(c.unseen, m)
	case strings.HasPrefix(fault.Of(err).Field, "content["):
		return c.convert(chat.Read(raw), err)
	}
	return all, err
}

// withoutEmptyCalls is a message without a list of calls that has none. Servers such as
// vLLM give it with each answer, and OpenAI's refuses it.
func withoutEmptyCalls(raw json.RawMessage) json.RawMessage {
	var members []chat.Member
	for name, value := range chat.EachMember(raw) {
		if string(name) != "tool_calls" || !bytes.Equal(bytes.Join(bytes.Fields(value), nil), []byte("[]")) {
			members = append(members, chat.Member{Name: string(name), Value: value})
		}
	}
	return chat.AppendObject(nil, members)
}

// look takes note of what a message calls or answers.
func (c *Converter) look(m *chat.Message) {
	if m.Role == chat.Tool {
		c.answered[m.Answers()] = true
		return
	}
	c.begun = c.begun || m.Role != chat.System && m.Role != chat.Developer
	c.calls, c.answered = nil, map[string]bool{}
	for _, call := range m.Calls {
		c.calls = append(c.calls, call.ID)
	}
}

// open is the first call without a result; "" for none.
func (c *Converter) open() string {
	if len(c.calls) == 0 && !c.begun && c.Open != nil {
		c.calls = c.Open()
	}
	for len(c.calls) > 0 && c.answered[c.calls[0]] {
		c.calls = c.calls[1:]
	}
	return append(c.calls, "")[0]
}

// convert gives the messages that a message stands for. It gives the refusal where an import
// would leave something out, or change it. A result without an id answers the first open
// call of the messages before, or of those that they go on from. The pictures of a user's results stand behind the rest.
func (c *Converter) convert(m *chat.Message, refusal error) (all []*chat.Message, err error) {
	if c.in.ctx == nil {
		c.in.ctx, c.answered = context.Background(), map[string]bool{}
	}
	for _, before := range c.unseen {
		c.look(before)
	}
	c.unseen = c.unseen[:0]
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
	switch noted := slices.ContainsFunc(said.Notes, func(n Note) bool { return n.Kind != KindHidden }); {
	case said.TooDense() != "":
		return nil, fault.New(fault.Invalid, "invalid_content", "content",
			"The request has too many parts of other APIs for its bytes. Send calls as tool_calls, and results as messages of role tool.")
	case noted, !t.Says() && len(m.Calls) == 0 && m.Refusal == nil:
		return nil, refusal
	}
	t.Add()
	var own *chat.Message // the last that m itself says
	for _, made := range said.Messages {
		one := chat.Read(made.Body)
		one.Reasoning = made.Reasoning
		if one.Role == m.Role {
			if own == nil {
				one.Reasoning = cmp.Or(one.Reasoning, m.Reasoning)
			}
			own, one.Name = one, m.Name
		}
		all = append(all, one)
	}
	if m.Refusal != nil || len(m.Calls) > 0 { // which stand beside the parts
		if own == nil {
			return nil, refusal
		}
		own.Refusal = m.Refusal
		own.Calls = append(own.Calls, slices.DeleteFunc(slices.Clone(m.Calls), func(beside chat.Call) bool {
			return slices.ContainsFunc(own.Calls, func(call chat.Call) bool { return call.ID == beside.ID })
		})...)
	}
	slices.SortStableFunc(all, func(a, b *chat.Message) int { // a user's message may have results behind its text
		return rank(m, a) - rank(m, b)
	})
	for i, one := range all {
		if one.Role == chat.Tool && one.Answers() == "" {
			id := c.open()
			if one.CallID = &id; m.Role == chat.Tool && m.CallID != nil {
				one.CallID = m.CallID
			}
			if one.Answers() == "" {
				return nil, fault.New(fault.Invalid, "missing_tool_call_id", "content", "A tool's result names no call, and no call before it is open. Give the result the id of its call.")
			}
		}
		if all[i], err = one.Encoded().Checked(); err != nil {
			return nil, refusal
		}
		c.look(all[i])
	}
	return all, nil
}

// rank is 0 of a result within a user's message.
func rank(of, m *chat.Message) int {
	if of.Role == chat.User && m.Role != chat.Tool {
		return 1
	}
	return 0
}
