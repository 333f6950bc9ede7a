package tree

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/google/uuid"
)

// The JSON of these types is the REST API's, so that the server, the command
// line and a program that imports this package all show the same. Bodies and
// metadata are spliced in as they are stored.

// AppendJSON appends the message's JSON to dst: {id, conversation_id,
// parent_id, the members of the body, reasoning where there is some, pinned, what
// its Annotation says, metadata, grafted where it was brought from another branch, tokens, depth,
// siblings, created_at}.
func (m Message) AppendJSON(dst []byte) []byte {
	dst = appendID(dst, `{"id":`, m.ID)
	dst = appendID(dst, `,"conversation_id":`, m.ConversationID)
	dst = appendID(dst, `,"parent_id":`, m.ParentID)
	dst = append(append(dst, ','), bodyMembers(m.Body)...)
	if m.Reasoning != "" {
		dst = appendString(dst, `,"reasoning":`, m.Reasoning)
	}
	dst = strconv.AppendBool(append(dst, `,"pinned":`...), m.Pinned)
	dst = m.Annotation.AppendJSON(dst)
	dst = appendObject(dst, `,"metadata":`, m.Metadata)
	dst = m.Graft.appendMember(dst)
	dst = appendInt(dst, `,"tokens":`, m.Tokens)
	dst = appendInt(dst, `,"depth":`, m.Depth)
	dst = appendInt(dst, `,"siblings":{"index":`, m.Siblings.Index)
	dst = appendInt(dst, `,"count":`, m.Siblings.Count)
	dst = appendTime(dst, `},"created_at":`, m.CreatedAt)
	return append(dst, '}')
}

// MarshalJSON is AppendJSON.
func (m Message) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// UnmarshalJSON reads what AppendJSON writes. The body then has its members in the order
// of their names, and PathTokens is 0.
func (m *Message) UnmarshalJSON(raw []byte) error {
	type bare Message // without this method
	var members map[string]json.RawMessage
	for _, into := range []any{(*bare)(m), &members} {
		if err := json.Unmarshal(raw, into); err != nil {
			return err
		}
	}
	for _, own := range reserved {
		delete(members, own)
	}
	// A body may have members of these names, which mean something else.
	var graft Graft
	for name, into := range map[string]any{"reasoning": &m.Reasoning, "rating": &m.Annotation.Rating, "label": &m.Annotation.Label, "note": &m.Annotation.Note, "grafted": &graft} {
		if value, there := members[name]; there && json.Unmarshal(value, into) == nil {
			delete(members, name)
		}
	}
	if graft.Messages > 0 {
		m.Graft = &graft
	}
	body, err := chat.Marshal(members)
	m.Body = body
	return err
}

// bodyMembers is an object's text between its braces. A stored body has a role
// at least.
func bodyMembers(body json.RawMessage) []byte {
	body = bytes.TrimSpace(body)
	return bytes.TrimSpace(body[1 : len(body)-1])
}

// AppendJSON appends {id, title, metadata, settings, archived, pinned, tags, head_id,
// created_at, updated_at, shape?}. It leaves out the tenant, because a client knows its own.
func (c Conversation) AppendJSON(dst []byte) []byte {
	dst = appendID(dst, `{"id":`, c.ID)
	dst = appendString(dst, `,"title":`, c.Title)
	dst = appendObject(dst, `,"metadata":`, c.Metadata)
	dst = appendObject(dst, `,"settings":`, c.Settings)
	dst = strconv.AppendBool(append(dst, `,"archived":`...), c.Archived)
	dst = strconv.AppendBool(append(dst, `,"pinned":`...), c.Pinned)
	dst = append(dst, `,"tags":[`...)
	for i, tag := range c.Tags {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, "", tag)
	}
	dst = append(dst, ']')
	dst = appendID(dst, `,"head_id":`, c.HeadID)
	dst = appendTime(dst, `,"created_at":`, c.CreatedAt)
	dst = appendTime(dst, `,"updated_at":`, c.UpdatedAt)
	if c.Shape != (Shape{}) {
		dst = strconv.AppendInt(append(dst, `,"shape":{"messages":`...), int64(c.Shape.Messages), 10)
		dst = append(strconv.AppendInt(append(dst, `,"branch_messages":`...), int64(c.Shape.BranchMessages), 10), '}')
	}
	if c.OwnerID != "" {
		dst = appendString(dst, `,"owner_id":`, c.OwnerID)
		dst = appendString(dst, `,"visibility":`, string(c.Visibility))
	}
	return append(dst, '}')
}

// MarshalJSON is AppendJSON.
func (c Conversation) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil), nil }

// AppendJSON appends {id, parent_id, kind, role, depth, tokens, pinned,
// sibling_index, created_at}. A summary also has {last_summarized_id,
// prior_summary_id, kept_ids, model, origin}, and a message that was brought from
// another branch {grafted}. A node that was read with a preview has it too, and an
// annotated one what its Annotation says.
func (n Node) AppendJSON(dst []byte) []byte {
	dst = appendID(dst, `{"id":`, n.ID)
	dst = appendID(dst, `,"parent_id":`, n.ParentID)
	dst = appendString(dst, `,"kind":`, string(n.Kind))
	dst = appendString(dst, `,"role":`, string(n.Role))
	dst = appendInt(dst, `,"depth":`, n.Depth)
	dst = appendInt(dst, `,"tokens":`, n.Tokens)
	dst = n.Annotation.AppendJSON(strconv.AppendBool(append(dst, `,"pinned":`...), n.Pinned))
	if n.Kind == KindMessage {
		dst = appendInt(dst, `,"sibling_index":`, n.Index)
	}
	dst = appendTime(dst, `,"created_at":`, n.CreatedAt)
	if n.Summary != nil {
		dst = n.Summary.appendMembers(dst)
	}
	dst = n.Graft.appendMember(dst)
	if n.Preview != "" {
		dst = appendString(dst, `,"preview":`, n.Preview)
	}
	return append(dst, '}')
}

// MarshalJSON is AppendJSON.
func (n Node) MarshalJSON() ([]byte, error) { return n.AppendJSON(nil), nil }

// UnmarshalJSON reads what AppendJSON writes.
func (n *Node) UnmarshalJSON(raw []byte) error {
	type bare Node // without this method
	err := json.Unmarshal(raw, (*bare)(n))
	if err == nil && n.Kind == KindSummary {
		err = json.Unmarshal(raw, &n.Summary)
	}
	return err
}

func (r SummaryRange) appendMembers(dst []byte) []byte {
	dst = appendID(dst, `,"last_summarized_id":`, r.LastSummarizedID)
	dst = appendID(dst, `,"prior_summary_id":`, r.PriorSummaryID)
	dst = append(dst, `,"kept_ids":[`...)
	for i, id := range r.KeptIDs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendID(dst, "", id)
	}
	dst = appendString(dst, `],"model":`, r.Model)
	return r.Origin.AppendJSON(append(dst, `,"origin":`...))
}

// AppendJSON appends {id, conversation_id, parent_id, last_summarized_id,
// prior_summary_id, kept_ids, model, origin, the members of the body,
// metadata, tokens, created_at}.
func (s Summary) AppendJSON(dst []byte) []byte {
	dst = appendID(dst, `{"id":`, s.ID)
	dst = appendID(dst, `,"conversation_id":`, s.ConversationID)
	dst = appendID(dst, `,"parent_id":`, s.AnchorID)
	dst = s.Range.appendMembers(dst)
	dst = append(append(dst, ','), bodyMembers(s.Body)...)
	dst = appendObject(dst, `,"metadata":`, s.Metadata)
	dst = appendInt(dst, `,"tokens":`, s.Tokens)
	dst = appendTime(dst, `,"created_at":`, s.CreatedAt)
	return append(dst, '}')
}

// MarshalJSON is AppendJSON.
func (s Summary) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil), nil }

// AppendJSON appends {conversation_id, sequence, message_id, parent_id, head_id,
// messages, at}. It leaves out the kind, which is the event's name, and the tenant.
func (c Change) AppendJSON(dst []byte) []byte {
	dst = appendID(dst, `{"conversation_id":`, c.ConversationID)
	dst = appendInt(dst, `,"sequence":`, int(c.Sequence))
	dst = appendID(dst, `,"message_id":`, c.MessageID)
	dst = appendID(dst, `,"parent_id":`, c.ParentID)
	dst = appendID(dst, `,"head_id":`, c.HeadID)
	dst = appendInt(dst, `,"messages":`, c.Messages)
	dst = appendTime(dst, `,"at":`, c.At)
	return append(dst, '}')
}

// MarshalJSON returns {message, head_id, title, snippet}.
func (h Hit) MarshalJSON() ([]byte, error) {
	dst := h.Message.AppendJSON([]byte(`{"message":`))
	dst = appendID(dst, `,"head_id":`, h.LeafID)
	dst = appendString(dst, `,"title":`, h.Title)
	dst = appendString(dst, `,"snippet":`, h.Snippet)
	return append(dst, '}'), nil
}

// MarshalJSON returns {messages, summaries, head_id}.
func (p Pruned) MarshalJSON() ([]byte, error) {
	dst := appendInt(nil, `{"messages":`, p.Messages)
	dst = appendInt(dst, `,"summaries":`, p.Summaries)
	dst = appendID(dst, `,"head_id":`, p.HeadID)
	return append(dst, '}'), nil
}

// MarshalJSON returns {data, next_cursor}. On the last page next_cursor is null.
func (p Page[T]) MarshalJSON() ([]byte, error) {
	data := p.Data
	if data == nil {
		data = []T{}
	}
	var next *string
	if p.Next != "" {
		next = &p.Next
	}
	return json.Marshal(struct {
		Data []T     `json:"data"`
		Next *string `json:"next_cursor"`
	}{data, next})
}

// AppendID appends an id as JSON, null for uuid.Nil. It allocates nothing, which
// counts for a page of a hundred ids.
func AppendID(dst []byte, id uuid.UUID) []byte {
	if id == uuid.Nil {
		return append(dst, "null"...)
	}
	dst = hex.AppendEncode(append(dst, '"'), id[:4])
	dst = hex.AppendEncode(append(dst, '-'), id[4:6])
	dst = hex.AppendEncode(append(dst, '-'), id[6:8])
	dst = hex.AppendEncode(append(dst, '-'), id[8:10])
	dst = hex.AppendEncode(append(dst, '-'), id[10:])
	return append(dst, '"')
}

func appendID(dst []byte, name string, id uuid.UUID) []byte {
	return AppendID(append(dst, name...), id)
}

func appendInt(dst []byte, name string, n int) []byte {
	return strconv.AppendInt(append(dst, name...), int64(n), 10)
}

func appendTime(dst []byte, name string, t time.Time) []byte {
	dst = append(append(dst, name...), '"')
	return append(t.UTC().AppendFormat(dst, time.RFC3339Nano), '"')
}

func appendObject(dst []byte, name string, object json.RawMessage) []byte {
	if len(object) == 0 {
		object = none
	}
	return append(append(dst, name...), object...)
}

func appendString(dst []byte, name, s string) []byte {
	quoted, _ := json.Marshal(s) // a string always marshals
	return append(append(dst, name...), quoted...)
}

// AppendJSON appends {id, conversation_id, head_id, summaries, created_at,
// expires_at}.
func (s Share) AppendJSON(dst []byte) []byte {
	dst = appendID(dst, `{"id":`, s.ID)
	dst = appendID(dst, `,"conversation_id":`, s.ConversationID)
	dst = appendID(dst, `,"head_id":`, s.HeadID)
	dst = strconv.AppendBool(append(dst, `,"summaries":`...), s.Summaries)
	dst = appendTime(dst, `,"created_at":`, s.CreatedAt)
	return append(appendMaybeTime(dst, `,"expires_at":`, s.ExpiresAt), '}')
}

// MarshalJSON is AppendJSON.
func (s Share) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil), nil }

// AppendJSON appends {title, created_at, expires_at, summary, data, next_cursor}.
func (s Shared) AppendJSON(dst []byte) []byte {
	dst = appendString(dst, `{"title":`, s.Title)
	dst = appendTime(dst, `,"created_at":`, s.CreatedAt)
	dst = appendMaybeTime(dst, `,"expires_at":`, s.ExpiresAt)
	if s.Summary == nil {
		dst = append(dst, `,"summary":null`...)
	} else {
		dst = append(append(dst, `,"summary":{`...), bodyMembers(s.Summary.Body)...)
		dst = appendInt(dst, `,"messages":`, s.Summary.Messages)
		dst = append(strconv.AppendBool(append(dst, `,"imported":`...), s.Summary.Imported), '}')
	}
	dst = append(dst, `,"data":[`...)
	for i, m := range s.Messages.Data {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, '{'), bodyMembers(m.Body)...)
		dst = append(appendTime(dst, `,"created_at":`, m.CreatedAt), '}')
	}
	if dst = append(dst, `],"next_cursor":`...); s.Messages.Next == "" {
		return append(dst, `null}`...)
	}
	return append(appendString(dst, "", s.Messages.Next), '}')
}

// MarshalJSON is AppendJSON.
func (s Shared) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil), nil }

func appendMaybeTime(dst []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return append(append(dst, name...), "null"...)
	}
	return appendTime(dst, name, t)
}
