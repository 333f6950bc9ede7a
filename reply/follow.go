package reply

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// followEvery is how often the events of another server's reply are looked for, at
// least: with the time between two saves, a reader is less than a second behind.
const followEvery = 200 * time.Millisecond

// follow gives a reply that reads what another server saves. It begins with the
// first reader who waits for something. Later readers share it.
func (s *Service) follow(c tree.Checkpoint, state tree.ReplyState) *Reply {
	k := s.key(c.ConversationID, c.MessageID)
	if r, ok := s.following.Load(k); ok {
		return r.(*Reply)
	}
	r := &Reply{
		key: k, events: newEvents(), ctx: s.closing, cancel: func(error) {}, prepared: make(chan struct{}), ended: make(chan struct{}),
		target: replyTarget{head: c.ParentID}, model: c.Model, metadata: addedIn(state.Metadata),
	}
	r.copied = true
	close(r.prepared)
	r.pull = sync.OnceFunc(func() {
		s.following.LoadOrStore(k, r)
		go s.pull(r)
	})
	return r
}

// pull reads what another server saves of a reply until it ends.
func (s *Service) pull(r *Reply) {
	end, err := s.pullAll(r)
	r.refused = err
	r.change(func() {
		r.broken = err
		if err != nil {
			return
		}
		if end.Message != nil {
			r.complete(end.Message)
		}
		if r.started == nil { // as of a server that doesn't save it yet
			r.only = true
		}
		r.end = &end
	})
	close(r.ended)
	s.following.CompareAndDelete(r.key, r)
}

func (s *Service) pullAll(r *Reply) (End, error) {
	ctx, cancel := context.WithTimeout(r.ctx, s.cfg.Timeout+2*s.cfg.Lease)
	defer cancel()
	ticker := time.NewTicker(min(s.cfg.CheckpointEvery/2, followEvery))
	defer ticker.Stop()
	for {
		c, err := s.store.Checkpoint(ctx, r.conversation, r.messageID)
		switch {
		case err == nil:
			s.copyEvents(ctx, r, c)
		case errors.Is(err, fault.NotFound):
			// It is stored, or it ended otherwise.
			next, err := s.findElsewhere(ctx, r.conversation, r.messageID)
			if err == nil && next.pull == nil {
				if m := next.end.Message; m != nil {
					s.copySteps(ctx, r, m.ParentID)
				}
				return *next.end, nil
			}
			if errors.Is(err, fault.NotFound) {
				return End{Status: StatusFailed, Err: errReplyNotFound}, nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done(): // the reply goes on, without its readers here
			return End{}, errClosed
		}
	}
}

// copyEvents takes over the events that another server saved. After an error the
// next look does.
func (s *Service) copyEvents(ctx context.Context, r *Reply, c tree.Checkpoint) {
	marks := decodeMarks(c.Marks)
	var last mark
	if n := len(marks); n > 0 {
		last = marks[n-1]
	}
	whole := int(last.reasoning) <= len(c.Reasoning) && int(last.content) <= len(c.Content) && int(last.refusal) <= len(c.Refusal)
	r.mu.Lock()
	started, before, steps := r.started, len(r.marks), r.steps
	r.mu.Unlock()
	begins := started == nil && c.Started != nil
	if begins {
		var err error
		if started, err = s.decodeStarted(ctx, c); err != nil {
			return
		}
	}
	if !whole || started == nil || !begins && len(marks) <= before {
		return
	}
	if int(last.steps) > len(steps) {
		parentID, _ := lastStep(c)
		var err error
		if steps, err = stepsAt(ctx, s.store, c.ConversationID, parentID, c.MessageID); err != nil || len(steps) < int(last.steps) {
			return
		}
	}
	r.change(func() {
		r.started, r.marks, r.steps = started, marks, steps
		r.reasoning, r.content, r.refusal = []byte(c.Reasoning[:last.reasoning]), []byte(c.Content[:last.content]), []byte(c.Refusal[:last.refusal])
	})
}

// copySteps takes over the steps that another server stored since its last save,
// up to the parent of the answer. Without them the answer is whole all the same.
func (s *Service) copySteps(ctx context.Context, r *Reply, parentID uuid.UUID) {
	if r.parent(r.target.head) == parentID {
		return
	}
	steps, err := stepsAt(ctx, s.store, r.conversation, parentID, r.messageID)
	if seen := len(r.recalled()); err == nil && len(steps) > seen {
		r.change(func() { r.stepped(steps[seen:]...) })
	}
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

// encodeMarks writes where events end in the texts. An event in which no text grows
// is a step. It ends before the first event with pieces of calls, which aren't
// saved.
func encodeMarks(marks []mark) []byte {
	var b []byte
	var last mark
	for _, m := range marks {
		if m.calls > 0 {
			break
		}
		for _, n := range []int32{m.reasoning - last.reasoning, m.content - last.content, m.refusal - last.refusal} {
			b = binary.AppendUvarint(b, uint64(n))
		}
		last = m
	}
	return b
}

// decodeMarks reads what encodeMarks wrote, as far as it is whole.
func decodeMarks(b []byte) (marks []mark) {
	var m mark
	for len(b) > 0 {
		last := m
		for _, field := range []*int32{&m.reasoning, &m.content, &m.refusal} {
			n, size := binary.Uvarint(b)
			if size <= 0 || n > maxMark-uint64(*field) {
				return marks
			}
			*field += int32(n)
			b = b[size:]
		}
		if m == last {
			m.steps++
		}
		marks = append(marks, m)
	}
	return marks
}

const maxMark = 1 << 30

// startedNote is how a Started is saved. The messages are on the branch.
type startedNote struct {
	MessageIDs []uuid.UUID       `json:"message_ids,omitempty"`
	Context    summarize.Context `json:"context"`
	SummaryID  *uuid.UUID        `json:"summary_id,omitempty"`
	Summary    json.RawMessage   `json:"summary,omitempty"`

	StepID *uuid.UUID `json:"step_id,omitempty"` // of the last step
	Steps  int        `json:"steps,omitempty"`
}

func encodeStarted(started *Started, steps ...tree.Message) json.RawMessage {
	if started == nil {
		return nil
	}
	n := startedNote{Context: started.Context}
	for _, m := range started.Messages {
		n.MessageIDs = append(n.MessageIDs, m.ID)
	}
	if c := started.Compacted; c != nil {
		n.SummaryID, n.Summary = &c.SummaryID, c.Message
	}
	if n.Steps = len(steps); n.Steps > 0 {
		n.StepID = &steps[n.Steps-1].ID
	}
	raw, _ := json.Marshal(n) // which is counts, ids and JSON that was read
	return raw
}

// lastStep is the message under which the answer of a checkpoint belongs, and how
// many steps there are above it.
func lastStep(c tree.Checkpoint) (parentID uuid.UUID, steps int) {
	var n startedNote
	if json.Unmarshal(c.Started, &n) != nil || n.StepID == nil {
		return c.ParentID, 0
	}
	return *n.StepID, n.Steps
}

func (s *Service) decodeStarted(ctx context.Context, c tree.Checkpoint) (*Started, error) {
	var n startedNote
	if err := json.Unmarshal(c.Started, &n); err != nil {
		return nil, err
	}
	started := &Started{MessageID: c.MessageID, ParentID: c.ParentID, Model: c.Model, Context: n.Context}
	if n.SummaryID != nil {
		started.Compacted = &Compacted{SummaryID: *n.SummaryID, Message: n.Summary}
	}
	if len(n.MessageIDs) == 0 {
		return started, nil
	}
	messages, err := s.store.Messages(ctx, c.ConversationID, n.MessageIDs)
	started.Messages = messages
	return started, ignoreNotFound(err) // some were pruned
}
