package reply

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// Running returns the replies that run in a conversation: all of this server's, and
// those of others from their first save on, which comes about a second after the
// start.
func (s *Service) Running(ctx context.Context, conversationID uuid.UUID) (_ []tree.RunningReply, err error) {
	defer fault.Wrap(&err, "reply.Running(%s)", conversationID)
	running, err := s.store.RunningReplies(ctx, conversationID)
	if err != nil {
		return nil, err
	}
	for _, r := range s.hub.runningIn(s.store.TenantID(), conversationID) {
		saved := func(other tree.RunningReply) bool { return other.MessageID == r.messageID }
		select {
		case <-r.prepared:
			if r.runs() && r.refused == nil && !slices.ContainsFunc(running, saved) {
				running = append(running, tree.RunningReply{MessageID: r.messageID, ParentID: r.target.head, Model: r.model})
			}
		default: // its request may still be refused
		}
	}
	return running, nil
}

func (h *hub) runningIn(tenant string, conversation uuid.UUID) (found []*Reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.running {
		if r.key.tenant == tenant && r.conversation == conversation {
			found = append(found, r)
		}
	}
	return found
}
