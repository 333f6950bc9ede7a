package summarize

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// AppendJSON appends the context's JSON to dst, in the REST API's shape. The
// messages are copied byte for byte, so that a provider's prompt cache keeps
// hitting and two contexts can be compared. The rest is written by hand,
// because contexts are requested most often.
func (c Context) AppendJSON(dst []byte) []byte {
	// What isn't counted is smaller. To grow a large context at its end would
	// copy it, into memory that is too large to be used again.
	size := 2<<10 + repairSize*len(c.Repairs)
	for _, m := range c.Messages {
		size += len(m) + len(",")
	}
	if c.Summary != nil {
		size += idSize * len(c.Summary.KeptIDs)
	}
	dst = slices.Grow(dst, size)
	dst = tree.AppendID(append(dst, `{"conversation_id":`...), c.ConversationID)
	dst = tree.AppendID(append(dst, `,"head_id":`...), c.HeadID)
	dst = c.AppendMessages(append(dst, `,"messages":`...))
	dst = appendString(append(dst, `,"roles":`...), string(c.Roles))
	dst = c.Summary.appendJSON(append(dst, `,"summary":`...))
	dst = c.Usage.appendJSON(append(dst, `,"usage":`...))
	dst = c.Counts.appendJSON(append(dst, `,"counts":`...))
	dst = strconv.AppendBool(append(dst, `,"complete":`...), c.Complete)
	dst = appendInt(dst, `,"omitted_messages":`, c.Omitted)
	dst = append(dst, `,"repairs":[`...)
	for i, r := range c.Repairs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.appendJSON(dst)
	}
	dst = appendString(append(dst, `],"status":`...), c.Status)
	return append(dst, '}')
}

// What an id takes in a list, and a repair whose call has an id of the usual
// length, in bytes.
const idSize, repairSize = 39, 160

func (s *ContextSummary) appendJSON(dst []byte) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	var prior uuid.UUID
	if s.PriorSummaryID != nil {
		prior = *s.PriorSummaryID
	}
	dst = tree.AppendID(append(dst, `{"id":`...), s.ID)
	dst = tree.AppendID(append(dst, `,"parent_id":`...), s.ParentID)
	dst = tree.AppendID(append(dst, `,"last_summarized_id":`...), s.LastSummarizedID)
	dst = tree.AppendID(append(dst, `,"prior_summary_id":`...), prior)
	dst = append(dst, `,"kept_ids":[`...)
	for i, id := range s.KeptIDs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = tree.AppendID(dst, id)
	}
	dst = appendString(append(dst, `],"model":`...), s.Model)
	dst = s.Origin.AppendJSON(append(dst, `,"origin":`...))
	dst = appendInt(dst, `,"tokens":`, s.Tokens)
	dst = appendString(append(dst, `,"created_at":`...), s.CreatedAt)
	return append(dst, '}')
}

func (u Usage) appendJSON(dst []byte) []byte {
	dst = appendInt(dst, `{"context_tokens":`, u.ContextTokens)
	dst = appendInt(dst, `,"available_tokens":`, u.AvailableTokens)
	dst = appendInt(dst, `,"max_context_tokens":`, u.MaxContextTokens)
	dst = appendInt(dst, `,"reserved_tokens":`, u.ReservedTokens)
	dst = appendInt(dst, `,"trigger_tokens":`, u.TriggerTokens)
	dst = appendInt(dst, `,"percent":`, u.Percent)
	return append(dst, '}')
}

func (n Counts) appendJSON(dst []byte) []byte {
	dst = appendInt(dst, `{"prefix":`, n.Prefix)
	dst = appendInt(dst, `,"kept":`, n.Kept)
	dst = appendInt(dst, `,"folded":`, n.Folded)
	dst = appendInt(dst, `,"tail":`, n.Tail)
	return append(dst, '}')
}

func (r Repair) appendJSON(dst []byte) []byte {
	dst = appendString(append(dst, `{"kind":`...), r.Kind)
	dst = tree.AppendID(append(dst, `,"message_id":`...), r.MessageID)
	dst = appendString(append(dst, `,"tool_call_id":`...), r.ToolCallID)
	dst = appendInt(dst, `,"index":`, r.Index)
	return append(dst, '}')
}

// MarshalJSON returns the JSON of AppendJSON. encoding/json rewrites that JSON
// (& becomes \u0026), so a program that needs the exact bytes calls AppendJSON
// or MarshalJSON itself.
func (c Context) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil), nil }

// AppendMessages appends only the messages, as the array of a chat-completions
// request.
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

func appendInt(dst []byte, name string, n int) []byte {
	return strconv.AppendInt(append(dst, name...), int64(n), 10)
}

// appendString appends s quoted, with &, < and > as they are.
func appendString(dst []byte, s string) []byte {
	special := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
	if !strings.ContainsFunc(s, special) {
		return append(append(append(dst, '"'), s...), '"')
	}
	quoted, _ := encode(s) // a string always marshals
	return append(dst, quoted...)
}

// encode is v as JSON that leaves &, < and > as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// A Part says what one of a context's messages is and what it costs.
type Part struct {
	Kind   PartKind
	ID     uuid.UUID // the message; of a repair, the one whose call it answers
	Tokens int
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
// Usage.ContextTokens.
func (c Context) Parts() []Part {
	out := make([]Part, len(c.parts))
	for i, p := range c.parts {
		out[i] = Part{p.kind, p.id, p.tokens}
	}
	return out
}
