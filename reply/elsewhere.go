package reply

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

const (
	// keepEnded is how long it is told of a reply how it ended, where nothing is
	// stored that tells it.
	keepEnded = time.Hour

	lookAgain = 200 * time.Millisecond
)

// members is an object of what a request adds to the metadata of its answer.
func members(added map[string]json.RawMessage) json.RawMessage {
	if len(added) == 0 {
		return nil
	}
	raw, _ := json.Marshal(added) // which was read as JSON
	return raw
}

// beside does what helps other servers. No reply fails for it.
func (s *Service) beside(r *Reply, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), saveTimeout)
	defer cancel()
	if err := f(ctx); err != nil {
		s.log.WarnContext(ctx, "the state of a reply was not stored", "conversation_id", r.conversation, "message_id", r.messageID, "error", err)
	}
}

// heed ends a reply that another server was asked to stop.
func (s *Service) heed(r *Reply) {
	s.beside(r, func(ctx context.Context) error {
		state, err := s.store.ReplyState(ctx, r.conversation, r.messageID)
		if err == nil && state.State == tree.StateStopping {
			r.cancel(errStopped)
		}
		return ignoreNotFound(err)
	})
}

// told gives the end of a reply that another server took. What this server has of
// the answer is not stored: it would contradict what was told. Where nothing was
// told, the reply failed with err.
func (s *Service) told(ctx context.Context, r *Reply, err error) End {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.StoreTimeout)
	defer cancel()
	there, findErr := s.findElsewhere(ctx, r.conversation, r.messageID)
	if findErr != nil {
		r.lost = true
		return End{Status: StatusFailed, Err: findErr}
	}
	if there.pull != nil { // it runs, on this server or as a new attempt on another
		r.lost = !errors.Is(err, fault.Conflict)
		if r.lost {
			err = errInterrupted
		}
		return End{Status: StatusFailed, Err: err}
	}
	r.lost = true
	s.log.WarnContext(ctx, "another server took a reply, because this one gave no sign of life", "conversation_id", r.conversation, "message_id", r.messageID)
	return *there.end
}

var errInterrupted = fault.New(fault.Model, "model_unavailable", "", "The server was killed before anything came of the answer. Ask again for another try, which makes a sibling.")

// findElsewhere gives a reply that another server runs, or that ended there with
// nothing to store. A reply that is younger than its first save is waited for.
func (s *Service) findElsewhere(ctx context.Context, conversationID, messageID uuid.UUID) (*Reply, error) {
	for looks := 1; ; looks++ {
		c, err := s.store.Checkpoint(ctx, conversationID, messageID)
		saved := err == nil
		if ignoreNotFound(err) != nil {
			return nil, err
		}
		state, err := s.store.ReplyState(ctx, conversationID, messageID)
		told := err == nil && state.State != tree.StateDeleted
		if ignoreNotFound(err) != nil {
			return nil, err
		}
		switch {
		case told && state.State == tree.StateEnded: // whatever a server saves that wakes later
			return endedReply(state, endFrom(state.Metadata)), nil
		case saved && (told || looks > 1): // a program of an older version tells no state
			return s.follow(c, state), nil
		}
		// Its answer may have been stored since it was looked for, or between the two looks.
		switch m, err := s.store.Message(ctx, conversationID, messageID); {
		case err == nil && m.Role == tree.RoleAssistant:
			return storedReply(m), nil
		case ignoreNotFound(err) != nil:
			return nil, err
		case told && looks > 1:
			return endedReply(state, End{Status: StatusFailed, FinishReason: FinishInterrupted, Err: errInterrupted}), nil
		case !told && !saved && !s.young(messageID):
			return nil, errReplyNotFound
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// young tells whether an id was made so lately that its reply may run elsewhere
// and not have been saved yet. Clocks of servers differ by little.
func (s *Service) young(id uuid.UUID) bool {
	if id.Version() != 7 {
		return false
	}
	age := time.Since(time.Unix(id.Time().UnixTime()))
	return age > -time.Second && age < 2*min(s.cfg.CheckpointEvery, time.Second)
}

// endedReply is one of which there is nothing but word of how it ended.
func endedReply(state tree.ReplyState, end End) *Reply {
	r := storedReply(tree.Message{ConversationID: state.ConversationID, ID: state.MessageID})
	r.end, r.metadata, r.target.head = &end, addedIn(state.Metadata), end.HeadID
	return r
}

// addedIn are the members that a request added to the metadata of its answer.
func addedIn(metadata json.RawMessage) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	_ = json.Unmarshal(metadata, &all) // there may be none
	delete(all, "reply")
	return all
}

func ignoreNotFound(err error) error {
	if errors.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
