package chat

import (
	"encoding/json"
	"slices"
)

// Many chat templates, those of the Mistral and Gemma families among them, take
// user and assistant by turns only: one system message at most, and first; then a
// user's message; no two of one role in a row, where an assistant's message with
// tool calls and the results belong to the turn of the assistant's next words; and
// no user's message right after a result.

// acknowledgment is what the assistant says where a turn of its own is missing.
const acknowledgment = "Understood."

// opening is what the user says where a history begins with the assistant.
const opening = "Begin."

// Acknowledgment returns an assistant's message of one word. It stands between two
// messages of the user, so that their roles alternate.
func Acknowledgment() json.RawMessage {
	return (&Message{Role: Assistant, Parts: []Part{TextPart(acknowledgment)}}).Encode()
}

// An Alternation tells whether roles alternate. The zero value has seen no message.
type Alternation struct {
	mixed  bool
	before Role // of the message before; "" for none
	open   bool // that message has tool calls
}

// Add tells of the next message. calls says whether it has tool calls.
func (a *Alternation) Add(role Role, calls bool) {
	var ok bool
	switch role {
	case System:
		ok = a.before == ""
	case User:
		ok = a.before == "" || a.before == System || a.before == Assistant && !a.open
	case Assistant:
		ok = a.before == User || a.before == Tool
	case Tool:
		ok = a.open || a.before == Tool
	}
	a.mixed = a.mixed || !ok
	a.before, a.open = role, calls
}

// Alternate reports whether the roles of the messages so far alternate.
func (a *Alternation) Alternate() bool { return !a.mixed }

// ByTurns returns messages whose roles alternate, and for each message the index at
// which the result has it. Neighbours of one role are joined, with an empty line
// between. Where a turn is missing, it is one word. A system message behind the
// first messages becomes the user's, and a developer's message in front the system's.
// Other messages keep their bytes.
//
// With noSystem, for templates that take no system message either, the user's first
// message begins with it.
func ByTurns(messages []json.RawMessage, noSystem bool) (out []json.RawMessage, at []int) {
	out, at = make([]json.RawMessage, 0, len(messages)), make([]int, len(messages))
	var last *Message
	add := func(m *Message, raw json.RawMessage) { out, last = append(out, raw), m }
	for i, raw := range messages {
		m := Read(raw)
		begins, role := last == nil || last.Role == System, m.Role
		switch {
		case (role == System || role == Developer) && (noSystem || !begins):
			role = User
		case role == Developer:
			role = System
		}
		if role != m.Role {
			m = &Message{Role: role, Parts: m.Parts, Plain: m.Plain}
			raw = m.Encode()
		}
		switch {
		case begins && m.Role == Assistant:
			opens := &Message{Role: User, Parts: []Part{TextPart(opening)}, Plain: true}
			add(opens, opens.Encode())
			add(m, raw)
		case last != nil && sameTurn(last, m):
			out[len(out)-1] = join(last, m)
			last = Read(out[len(out)-1])
		case m.Role == User && last != nil && (last.Role == Tool || len(last.Calls) > 0):
			out = append(out, Acknowledgment())
			add(m, raw)
		default:
			add(m, raw)
		}
		at[i] = len(out) - 1
	}
	return out, at
}

// sameTurn tells whether b has to be joined to the message before it. Results stay
// apart, and so does what follows a call.
func sameTurn(a, b *Message) bool {
	return a.Role == b.Role && a.Role != Tool && len(a.Calls) == 0
}

// join is a message that says what two say. Text becomes one text, because some
// templates take no list of parts. All else of b stays, its calls among it.
func join(a, b *Message) json.RawMessage {
	m := &Message{Role: a.Role, Parts: slices.Concat(a.Parts, b.Parts), Name: a.Name}
	if textOnly(a) && textOnly(b) {
		text := a.Text()
		if said := b.Text(); said != "" && text != "" {
			text += "\n\n" + said
		} else {
			text += said
		}
		m.Parts = []Part{TextPart(text)}
	}
	if len(b.Calls) == 0 {
		return m.Encode()
	}
	members := Members(b.Raw)
	content := Member{"content", m.appendContent(nil)}
	if i := slices.IndexFunc(members, func(m Member) bool { return m.Name == "content" }); i >= 0 {
		members[i] = content
	} else {
		members = append(members, content)
	}
	return AppendObject(nil, members)
}

func textOnly(m *Message) bool { return m.Plain || len(m.Parts) == 0 }
