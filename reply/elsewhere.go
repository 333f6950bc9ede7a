package reply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tree"
)

const (
	// keepEnded is how long it is told of a reply in the background how it ended,
	// where nothing is stored that tells it.
	keepEnded = time.Hour

	lookAgain = 200 * time.Millisecond
)

// announce keeps word of a reply in the background before it begins.
func (s *Service) announce(ctx context.Context, r *Reply, a *assignment) error {
	err := s.store.PutReplyState(ctx, tree.ReplyState{
		ConversationID: r.conversation, MessageID: r.messageID, State: tree.StateRunning, Metadata: members(r.metadata),
	})
	if err != nil {
		return err
	}
	return s.saveOnce(ctx, r, a)
}

// members is an object of what a request adds to the metadata of its answer.
func members(added map[string]json.RawMessage) json.RawMessage {
	if len(added) == 0 {
		return nil
	}
	raw, _ := json.Marshal(added) // which was read as JSON
	return raw
}

// tell stores the state of a reply, or else logs why not: it is a help for other
// servers, and no reply fails for it.
func (s *Service) tell(r *Reply, state tree.State, metadata json.RawMessage) {
	s.beside(r, func(ctx context.Context) error {
		return s.store.PutReplyState(ctx, tree.ReplyState{ConversationID: r.conversation, MessageID: r.messageID, State: state, Metadata: metadata})
	})
}

func (s *Service) untell(r *Reply) {
	s.beside(r, func(ctx context.Context) error { return s.store.DropReplyState(ctx, r.conversation, r.messageID) })
}

func (s *Service) beside(r *Reply, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), saveTimeout)
	defer cancel()
	if err := f(ctx); err != nil {
		s.log.WarnContext(ctx, "the state of a reply was not stored", "conversation_id", r.conversation, "message_id", r.messageID, "error", err)
	}
}

// heed ends a reply in the background that another server was asked to stop.
func (s *Service) heed(r *Reply, a *assignment) {
	if !a.request.Background {
		return
	}
	s.beside(r, func(ctx context.Context) error {
		state, err := s.store.ReplyState(ctx, r.conversation, r.messageID)
		if err == nil && state.State == tree.StateStopping {
			r.cancel(errStopped)
		}
		if errors.Is(err, fault.NotFound) {
			return nil
		}
		return err
	})
}

// takeUp stores what a killed server left of an answer. Of a reply in the
// background of which nothing had come, it is told that it failed.
func (s *Service) takeUp(ctx context.Context, c tree.Checkpoint) (m tree.Message, stored bool, err error) {
	store := s.store.ForTenant(c.TenantID)
	state, err := store.ReplyState(ctx, c.ConversationID, c.MessageID)
	told := err == nil
	if err != nil && !errors.Is(err, fault.NotFound) {
		return m, false, err
	}
	added := addedIn(state.Metadata)
	var last step
	if saved, err := store.Checkpoint(ctx, c.ConversationID, c.MessageID); err == nil {
		if _, last, err = stepAt(ctx, store, c.ConversationID, saved.ParentID, c.MessageID); err != nil {
			return m, false, err
		}
	}
	answer := func(c tree.Checkpoint) tree.NewMessage {
		m := interruptedBelow(c, last)
		m.Metadata = withMembers(m.Metadata, added)
		return m
	}
	if m, stored, err = s.store.TakeCheckpoint(ctx, c, answer); err != nil || !told {
		return m, stored, err
	}
	if stored {
		return m, true, store.DropReplyState(ctx, c.ConversationID, c.MessageID)
	}
	if _, err := store.Message(ctx, c.ConversationID, c.MessageID); err == nil {
		return m, false, store.DropReplyState(ctx, c.ConversationID, c.MessageID)
	}
	if _, err := store.Checkpoint(ctx, c.ConversationID, c.MessageID); err == nil {
		return m, false, nil // it was saved again: its server lives
	}
	if state, err = store.ReplyState(ctx, c.ConversationID, c.MessageID); err != nil || state.State == tree.StateEnded || state.State == tree.StateDeleted {
		return m, false, ignoreNotFound(err) // its server has told how it ended
	}
	state.State, state.Metadata = tree.StateEnded, record(c.Model, added, llm.Response{}, 0, End{Status: StatusFailed, FinishReason: FinishInterrupted, Err: errInterrupted})
	return m, false, store.PutReplyState(ctx, state)
}

var errInterrupted = fault.New(fault.Model, "model_unavailable", "", "The server was killed before anything came of the answer. Ask again for another try, which makes a sibling.")

// findElsewhere gives a reply that another server runs, or that ended there with
// nothing to store. A reply that is younger than its first save is waited for.
func (s *Service) findElsewhere(ctx context.Context, conversationID, messageID uuid.UUID) (*Reply, error) {
	for {
		c, err := s.store.Checkpoint(ctx, conversationID, messageID)
		saved := err == nil
		if err != nil && !errors.Is(err, fault.NotFound) {
			return nil, err
		}
		state, err := s.store.ReplyState(ctx, conversationID, messageID)
		told := err == nil && state.State != tree.StateDeleted
		if err != nil && !errors.Is(err, fault.NotFound) {
			return nil, err
		}
		switch {
		case saved:
			return s.follow(ctx, c, state)
		case told && state.State == tree.StateEnded:
			return endedReply(state, endFrom(state.Metadata)), nil
		}
		// Its answer may have been stored since it was looked for.
		switch m, err := s.store.Message(ctx, conversationID, messageID); {
		case err == nil && m.Role == tree.RoleAssistant:
			return storedReply(m), nil
		case err != nil && !errors.Is(err, fault.NotFound):
			return nil, err
		case told:
			return endedReply(state, End{Status: StatusFailed, FinishReason: FinishInterrupted, Err: errInterrupted}), nil
		case !s.young(messageID):
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
	r.end, r.metadata = &end, addedIn(state.Metadata)
	return r
}

// withMembers adds members to the metadata of an answer.
func withMembers(metadata json.RawMessage, added map[string]json.RawMessage) json.RawMessage {
	all := membersOf(metadata)
	maps.Copy(all, added)
	return members(all)
}

// addedIn are the members that a request added to the metadata of its answer.
func addedIn(metadata json.RawMessage) map[string]json.RawMessage {
	all := membersOf(metadata)
	delete(all, "reply")
	return all
}

func membersOf(object json.RawMessage) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	_ = json.Unmarshal(object, &all) // there may be none
	return all
}

// follow gives a reply that reads what another server saves. It begins with the
// first reader who waits for something.
func (s *Service) follow(ctx context.Context, c tree.Checkpoint, state tree.ReplyState) (*Reply, error) {
	steps, head, err := stepsAt(ctx, s.store, c.ConversationID, c.ParentID, c.MessageID)
	if err != nil {
		return nil, err
	}
	r := &Reply{
		key: s.key(c.ConversationID, c.MessageID), events: newEvents(), ctx: s.closing, cancel: func(error) {}, prepared: make(chan struct{}), ended: make(chan struct{}),
		place: place{head: head}, model: c.Model, metadata: addedIn(state.Metadata),
	}
	r.started = &Started{MessageID: c.MessageID, ParentID: head, Model: c.Model}
	r.stepped(steps...)
	close(r.prepared)
	r.pull = sync.OnceFunc(func() { go s.pull(r) })
	return r, nil
}

// catchUp reads the steps that another server has stored since, up to the parent
// of what is saved or of the answer.
func (s *Service) catchUp(ctx context.Context, r *Reply, parentID uuid.UUID) {
	if r.parent(r.place.head) == parentID {
		return
	}
	steps, _, err := stepsAt(ctx, s.store, r.conversation, parentID, r.messageID)
	if seen := len(r.recalled()); err == nil && len(steps) > seen {
		r.change(func() { r.stepped(steps[seen:]...) })
	}
}

// pull reads what another server saves of a reply until it ends.
func (s *Service) pull(r *Reply) {
	end := s.pullAll(r)
	r.change(func() {
		if end.Message != nil {
			r.complete(end.Message)
		}
		r.end = &end
	})
	close(r.ended)
	r.cancel(nil)
}

func (s *Service) pullAll(r *Reply) End {
	ctx, cancel := context.WithTimeout(r.ctx, s.cfg.Timeout+2*s.cfg.Lease)
	defer cancel()
	ticker := time.NewTicker(min(s.cfg.CheckpointEvery, time.Second) / 2)
	defer ticker.Stop()
	for {
		c, err := s.store.Checkpoint(ctx, r.conversation, r.messageID)
		switch {
		case err == nil:
			s.catchUp(ctx, r, c.ParentID)
			r.grow(c.Reasoning, c.Content, c.Refusal)
		case errors.Is(err, fault.NotFound):
			// It is stored, or it ended otherwise.
			next, err := s.findElsewhere(ctx, r.conversation, r.messageID)
			if err == nil && next.pull == nil {
				if m := next.end.Message; m != nil {
					s.catchUp(ctx, r, m.ParentID)
				}
				return *next.end
			}
			if errors.Is(err, fault.NotFound) {
				return End{Status: StatusFailed, Err: errReplyNotFound}
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return End{Status: StatusFailed, FinishReason: FinishInterrupted, Err: errInterrupted}
		}
	}
}

// grow adds what came since the last look.
func (r *Reply) grow(reasoning, content, refusal string) {
	r.change(func() {
		if rest, ok := strings.CutPrefix(reasoning, string(r.reasoning)); ok {
			r.reasoning = append(r.reasoning, rest...)
		}
		if rest, ok := strings.CutPrefix(content, string(r.content)); ok {
			r.content = append(r.content, rest...)
		}
		if rest, ok := strings.CutPrefix(refusal, string(r.refusal)); ok {
			r.refusal = append(r.refusal, rest...)
		}
	})
}

// complete adds what a stored answer has beyond what was saved of it. It runs
// under the log's lock.
func (r *Reply) complete(answer *tree.Message) {
	if strings.HasPrefix(answer.Reasoning, string(r.reasoning)) {
		r.reasoning = []byte(answer.Reasoning)
	}
	m := chat.Read(answer.Body)
	if text := []byte(m.Text()); bytes.HasPrefix(text, r.content) {
		r.content = text
	}
	if m.Refusal != nil && strings.HasPrefix(*m.Refusal, string(r.refusal)) {
		r.refusal = []byte(*m.Refusal)
	}
	for i, call := range m.Calls {
		piece, _ := json.Marshal(map[string]any{ // strings always marshal
			"index": i, "id": call.ID, "type": "function", "function": map[string]string{"name": call.Name, "arguments": call.Arguments},
		})
		r.calls = append(r.calls, piece)
	}
}

func ignoreNotFound(err error) error {
	if errors.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
