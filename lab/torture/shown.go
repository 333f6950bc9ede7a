package torture

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
)

// A shown is a message as a server shows it: over REST, in an event or in a context.
type shown struct {
	ID             uuid.UUID `json:"id"`
	ParentID       uuid.UUID `json:"parent_id"`
	ConversationID uuid.UUID `json:"conversation_id"`
	Pinned         bool      `json:"pinned"`
	Depth          int       `json:"depth"`

	role    string
	text    string
	calls   []chat.Call
	answers string
}

func (s *shown) UnmarshalJSON(b []byte) error {
	type plain shown
	said := chat.Read(bytes.Clone(b))
	s.role, s.text, s.calls, s.answers = string(said.Role), chat.Shown(said.Parts), said.Calls, ""
	if said.CallID != nil {
		s.answers = *said.CallID
	}
	return json.Unmarshal(b, (*plain)(s))
}

// says tells whether a server shows the message's own part of m.
func (s *shown) says(m *message) bool {
	return s.role == m.role && (m.content == "" || s.text == m.content) && s.answers == m.answers && slices.Equal(s.calls, m.calls)
}

// body is the message's own part of a request that appends it.
func (m *message) body() map[string]any {
	b := map[string]any{"id": m.id, "role": m.role, "content": m.content, "pinned": m.pinned}
	if len(m.calls) > 0 {
		b["tool_calls"] = chat.EncodeCalls(m.calls)
	}
	if m.answers != "" {
		b["tool_call_id"] = m.answers
	}
	return b
}

// checkShown compares a message that a server shows with the ledger. The caller
// holds mu.
func (c *conversation) checkShown(m *message, got shown, where string) {
	if got.ID != m.id || got.ParentID != m.parent || got.Depth != m.depth || got.Pinned != m.pinned || !got.says(m) {
		c.violate("changed", "%s shows %+v, and the ledger has %+v", where, got, *m)
	}
}
