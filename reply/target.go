package reply

import (
	"bytes"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// A replyTarget is the message that a reply answers.
type replyTarget struct {
	head     uuid.UUID
	messages []tree.Message // that the request brought, of which the last is the head
}

// serves tells whether a request asks for an answer to the same. The active
// head may have moved since the first request.
func (p replyTarget) serves(req Request) bool {
	n := len(req.Messages)
	if n == 0 {
		return req.HeadID == uuid.Nil || req.HeadID == p.head
	}
	if len(p.messages) != n || p.messages[n-1].ID != p.head {
		return false
	}
	for i, m := range p.messages {
		given := req.Messages[i]
		if !sameJSON(m.Body, given.Body) || m.Reasoning != given.Reasoning || !sameJSON(m.Metadata, given.Metadata) || m.Pinned != given.Pinned || m.ID != given.ID ||
			i > 0 && m.ParentID != p.messages[i-1].ID {
			return false
		}
	}
	parentID := p.messages[0].ParentID
	if req.ParentID != nil {
		return parentID == *req.ParentID
	}
	return req.HeadID == uuid.Nil || parentID == req.HeadID
}

func sameJSON(a, b json.RawMessage) bool {
	plain := func(raw json.RawMessage) string {
		var b bytes.Buffer
		if len(raw) == 0 || json.Compact(&b, raw) != nil {
			return "{}"
		}
		return b.String()
	}
	return plain(a) == plain(b)
}
