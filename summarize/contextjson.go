package summarize

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/google/uuid"
)

// AppendJSON appends the context's JSON to dst, in the REST API's shape. The
// messages are spliced in byte for byte: a provider's prompt cache, and whoever
// compares two contexts, sees what was said and no other spelling of it.
func (c Context) AppendJSON(dst []byte) ([]byte, error) {
	type bare Context // without this method
	rest := bare(c)
	rest.Messages = nil
	members, err := encode(rest)
	if err != nil {
		return nil, err
	}
	size := len(members)
	for _, m := range c.Messages {
		size += len(m) + 1
	}
	dst = slices.Grow(dst, size)
	before, after, _ := bytes.Cut(members, []byte(`"messages":null`))
	dst = append(append(dst, before...), `"messages":`...)
	return append(c.AppendMessages(dst), after...), nil
}

// MarshalJSON is AppendJSON. encoding/json rewrites what it gives (& becomes
// \u0026), so a program that needs the bytes calls it, or AppendJSON, itself.
func (c Context) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// AppendMessages appends the messages alone, as the array that a
// chat-completions request takes.
func (c Context) AppendMessages(dst []byte) []byte {
	dst = append(dst, '[')
	for i, m := range c.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, m...)
	}
	return append(dst, ']')
}

// encode is v as JSON that leaves &, < and > as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// A Part tells of one of a context's messages what it is and what it costs.
type Part struct {
	Kind   PartKind
	ID     uuid.UUID // the message; of a repair, the one whose call it answers
	Tokens int
}

// PartKind is what a message of a context is there for.
type PartKind string

const (
	PartPrefix  PartKind = "prefix"
	PartSummary PartKind = "summary" // with the kept text
	PartTail    PartKind = "tail"
	PartRepair  PartKind = "repair" // a result that the branch doesn't have; see Repair
)

// Parts tells of each of Messages what it is. The tokens add up to
// Usage.ContextTokens.
func (c Context) Parts() []Part {
	out := make([]Part, len(c.parts))
	for i, p := range c.parts {
		out[i] = Part{p.kind, p.id, p.tokens}
	}
	return out
}
