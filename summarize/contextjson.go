package summarize

import (
	"bytes"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
)

// AppendJSON appends the context's JSON to dst, in the REST API's shape. The
// messages are copied byte for byte, so that a provider's prompt cache keeps
// hitting and two contexts can be compared.
func (c Context) AppendJSON(dst []byte) []byte {
	type bare Context // without MarshalJSON
	rest := bare(c)
	rest.Messages = nil
	raw, _ := chat.Marshal(rest)                       // texts, ids and counts always marshal
	before, after, _ := bytes.Cut(raw, []byte("null")) // both ids before the messages are texts
	// To grow a large context at its end would copy it, into memory that is too large
	// to be used again.
	size := len(raw) + len("[]")
	for _, m := range c.Messages {
		size += len(m) + len(",")
	}
	dst = append(slices.Grow(dst, size), before...)
	return append(c.AppendMessages(dst), after...)
}

// MarshalJSON returns the JSON of AppendJSON. encoding/json rewrites that JSON
// (& becomes \u0026), so a program that needs the exact bytes calls AppendJSON
// or MarshalJSON itself.
func (c Context) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil), nil }

// AppendMessages appends only the messages, as the array of a chat-completions
// request.
func (c Context) AppendMessages(dst []byte) []byte { return chat.AppendArray(dst, c.Messages) }

// A Part says what one of a context's messages is and what it costs.
type Part struct {
	Kind   PartKind  `json:"kind"`
	ID     uuid.UUID `json:"id,omitzero"` // the message; of a repair, the one whose call it answers; uuid.Nil for a turn
	Tokens int       `json:"tokens"`
}

// A PartKind says why a message is in a context.
type PartKind string

const (
	PartPrefix  PartKind = "prefix"
	PartSummary PartKind = "summary" // with the kept text
	PartTail    PartKind = "tail"
	PartTurn    PartKind = "turn"   // a word of the assistant's, so that roles alternate
	PartRepair  PartKind = "repair" // a result that the branch doesn't have; see Repair
)

// Parts returns a Part for each of Messages. The tokens add up to
// Usage.ContextTokens. The caller doesn't change it.
func (c Context) Parts() []Part { return c.parts }
