package reply

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// messageID is the id of a message of the request whose answer has the id given.
func messageID(answer uuid.UUID, index int) uuid.UUID {
	if index == 0 {
		return uuid.NewSHA1(answer, []byte("message"))
	}
	return uuid.NewSHA1(answer, fmt.Appendf(nil, "message %d", index))
}

// earlier looks for the reply that an earlier request of the same id made; nil for
// none. One that ended with nothing to store makes room for another try.
func (s *Service) earlier(ctx context.Context, req Request) (*Reply, error) {
	r, err := s.running(ctx, req.ConversationID, req.ID)
	if err != nil {
		return nil, err
	}
	if r == nil {
		if r, err = s.known(ctx, req.ConversationID, req.ID); r == nil || err != nil {
			return nil, err
		}
		if r.found != nil && r.found.Message == nil {
			return nil, nil
		}
	}
	if req.Continue && req.HeadID != uuid.Nil {
		continued, err := s.store.Message(ctx, req.ConversationID, req.HeadID)
		if ignoreNotFound(err) != nil {
			return nil, err
		}
		req.HeadID = cmp.Or(continued.ParentID, req.HeadID) // what both answer
	}
	ids := make([]uuid.UUID, len(req.Messages))
	for i, given := range req.Messages {
		ids[i] = given.ID
	}
	stored, err := s.store.Messages(ctx, req.ConversationID, ids)
	if ignoreNotFound(err) != nil {
		return nil, err
	}
	if !serves(r.head, stored, req) || !bytes.Equal(r.metadata[answers], req.Metadata[answers]) {
		return nil, errTaken
	}
	return r, nil
}

// serves tells whether a request asks for an answer to the same head, and brings the
// messages that are stored. The active head may have moved since the first request.
func serves(head uuid.UUID, stored []tree.Message, req Request) bool {
	n := len(req.Messages)
	if n == 0 {
		return req.HeadID == uuid.Nil || req.HeadID == head
	}
	if len(stored) != n || stored[n-1].ID != head {
		return false
	}
	for i, m := range stored {
		given := req.Messages[i]
		if !sameJSON(m.Body, given.Message.Raw) || m.Reasoning != given.Reasoning || !sameJSON(m.Metadata, given.Metadata) || m.Pinned != given.Pinned || m.ID != given.ID ||
			i > 0 && m.ParentID != stored[i-1].ID {
			return false
		}
	}
	parentID := stored[0].ParentID
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

// asBefore finds where an earlier attempt of a request under the active head stored
// its messages: they moved that head themselves.
func (s *Service) asBefore(ctx context.Context, req *Request) error {
	if req.HeadID != uuid.Nil || req.ParentID != nil || len(req.Messages) == 0 {
		return nil
	}
	first, err := s.store.Message(ctx, req.ConversationID, req.Messages[0].ID)
	if err == nil {
		req.ParentID = &first.ParentID
	}
	return ignoreNotFound(err)
}
