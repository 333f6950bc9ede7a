package reply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// messageID is the id of a message of the request whose answer has the id given.
func messageID(answer uuid.UUID, index int) uuid.UUID {
	if index == 0 {
		return uuid.NewSHA1(answer, []byte("message"))
	}
	return uuid.NewSHA1(answer, fmt.Appendf(nil, "message %d", index))
}

// earlier looks for the reply that an earlier request of the same id made.
func (s *Service) earlier(ctx context.Context, req Request) (*Reply, error) {
	if r := s.hub.find(s.key(req.ConversationID, req.ID)); r != nil && r.runs() {
		// One that was refused because another server has it is looked for there.
		if there, err := r.joined(ctx, req); !errors.Is(err, tree.ErrReplyLost) {
			return there, err
		}
	}
	// Of one that ended, what is stored counts: it may have been pruned since.
	m, err := s.store.Message(ctx, req.ConversationID, req.ID)
	var saved tree.Checkpoint
	var p replyTarget
	switch {
	case err == nil && m.Role != tree.RoleAssistant:
		return nil, errTaken
	case err == nil:
		p.head = endFrom(m.Metadata).headOf(m)
	case !errors.Is(err, fault.NotFound):
		return nil, err
	default:
		if saved, err = s.store.Checkpoint(ctx, req.ConversationID, req.ID); err != nil {
			return nil, ignoreNotFound(err)
		}
		p.head = saved.ParentID
	}
	ids := make([]uuid.UUID, len(req.Messages))
	for i, given := range req.Messages {
		ids[i] = given.ID
	}
	if p.messages, err = s.store.Messages(ctx, req.ConversationID, ids); err != nil && !errors.Is(err, fault.NotFound) {
		return nil, err
	}
	if !p.serves(req) {
		return nil, errTaken
	}
	if saved.MessageID != uuid.Nil {
		return s.findElsewhere(ctx, req.ConversationID, req.ID)
	}
	if r := s.hub.find(s.key(req.ConversationID, req.ID)); r != nil {
		return r, nil
	}
	return storedReply(m), nil
}

// joined gives the reply to another request of its id.
func (r *Reply) joined(ctx context.Context, req Request) (*Reply, error) {
	select {
	case <-r.prepared:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case r.refused != nil:
		return nil, r.refused
	case !r.target.serves(req):
		return nil, errTaken
	}
	return r, nil
}

// begunElsewhere looks for the reply of the request's id that another server may
// just have begun, where this server was refused with err.
func (s *Service) begunElsewhere(ctx context.Context, req Request, err error) (*Reply, error) {
	for looks := 1; ; looks++ {
		if there, err := s.earlier(ctx, req); there != nil || err != nil {
			return there, err
		}
		if looks > 1 {
			break
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if errors.Is(err, tree.ErrReplyLost) {
		return nil, errJustEnded
	}
	return nil, err
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
