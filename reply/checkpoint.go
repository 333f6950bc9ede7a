package reply

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tree"
)

// FinishInterrupted is the finish reason of an answer whose server was killed, or
// stopped before the answer was whole.
const FinishInterrupted = "interrupted"

const (
	saveTimeout = 5 * time.Second
	listTimeout = 30 * time.Second // of the list of checkpoints
	takeTimeout = 5 * time.Second  // of one of them
)

// saving is what is known of a reply's checkpoint. Its lock keeps a save and the
// end apart.
type saving struct {
	sync.Mutex
	tried   bool // to claim the reply
	claimed bool // by its first save
	over    bool // the end is stored
}

// has tells whether this server claimed the reply.
func (s *saving) has() bool {
	s.Lock()
	defer s.Unlock()
	return s.claimed
}

// claims takes note of a claim that was made with the request's messages.
func (s *saving) claims(claimed bool) {
	s.Lock()
	defer s.Unlock()
	s.tried, s.claimed = true, claimed
}

// saveWhile saves what came of a reply again and again, until stop is called. A
// reply that is shorter than the interval costs nothing.
func (s *Service) saveWhile(r *Reply, a *assignment) (stop func()) {
	if a.unstored {
		return func() {}
	}
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(s.cfg.CheckpointEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if r.settled() && s.save(r, a) {
					s.heed(r)
				}
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-stopped
	}
}

// save saves what came until now. Where nothing came, or nothing is new, it is a
// sign of life all the same. It tells whether it was saved, and ends a reply that
// another server has taken.
func (s *Service) save(r *Reply, a *assignment) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), saveTimeout)
	defer cancel()
	err := s.saveOnce(ctx, r, a, false)
	switch {
	case errors.Is(err, tree.ErrReplyLost):
		r.cancel(errLost)
	case err != nil:
		s.log.WarnContext(ctx, "what came of an answer could not be saved yet", "conversation_id", r.conversation, "message_id", r.messageID, "error", err)
	}
	return err == nil
}

// saveOnce saves what came until now. The first save claims the reply for this
// server; newTry is as with tree.ClaimReply.
func (s *Service) saveOnce(ctx context.Context, r *Reply, a *assignment, newTry bool) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	switch {
	case r.saving.over:
		return nil
	case r.saving.claimed:
		return s.store.SaveCheckpoint(ctx, s.checkpoint(r, a))
	}
	return s.claim(ctx, r, a, newTry)
}

// claim makes the first save. Where an earlier one was made and the word of it got
// lost, what others told meanwhile stays: that the reply is to stop, or was deleted. It
// runs under the lock of what is known of saves.
func (s *Service) claim(ctx context.Context, r *Reply, a *assignment, newTry bool) error {
	err := tree.ErrReplyLost
	if r.saving.tried {
		err = s.store.SaveCheckpoint(ctx, s.checkpoint(r, a))
	}
	if r.saving.tried = true; errors.Is(err, tree.ErrReplyLost) {
		err = s.store.ClaimReply(ctx, s.checkpoint(r, a), members(r.metadata), newTry)
	}
	r.saving.claimed = err == nil
	return err
}

// checkpoint is what came of a reply until now. What is saved can be read on other
// servers, and so is cut into events.
func (s *Service) checkpoint(r *Reply, a *assignment) tree.Checkpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.freeze()
	return tree.Checkpoint{
		ConversationID: r.conversation, MessageID: r.messageID, ParentID: a.head, MoveHeadFrom: a.active, ServerID: s.cfg.ServerID, Model: r.model,
		Content: string(r.content), Refusal: string(r.refusal), Reasoning: string(r.reasoning), Marks: encodeMarks(r.marks), Started: encodeStarted(r.started, r.steps...),
	}
}

// tellEnd stores how a reply ended of which nothing is stored, so that any server
// tells it, and deletes its checkpoint. It leaves the checkpoint where the answer
// could not be stored because the database was away: then the checkpoint is what is
// left, and Recover stores it. tellEnd returns the end that was told: another one,
// where another server took the reply.
func (s *Service) tellEnd(r *Reply, a *assignment, end End) End {
	gone := errors.Is(end.Err, fault.NotFound) // its branch, or all of its conversation
	if end.Message != nil || a.unstored || r.lost || gone && !r.saving.tried {
		return end
	}
	content, refusal := r.text()
	if r.saving.tried && !fault.Refused(end.Err) && partial(content, refusal) != nil {
		return end
	}
	last := tree.ReplyEnd{ConversationID: r.conversation, MessageID: r.messageID}
	if !gone {
		last.Metadata = lastWord(r.model, r.metadata, end)
	}
	if !a.request.KeepHead {
		last.HeadID = a.head
	}
	if r.saving.tried {
		last.ServerID = s.cfg.ServerID
	}
	s.beside(r, func(ctx context.Context) error {
		err := s.store.EndReply(ctx, last)
		if errors.Is(err, tree.ErrReplyLost) {
			if r.saving.claimed {
				end = s.told(ctx, r, errLost)
			}
			return nil
		}
		return err
	})
	return end
}

// Recover stores the answers, of every tenant, that were streaming when their
// server was killed, as far as they had come. It works until ctx is done. Run
// it once in a program. It takes up the answers of the server that
// Config.ServerID names at once, and answers of another server after
// Config.Lease. Several servers may run it at a time: each answer is stored
// once.
func (s *Service) Recover(ctx context.Context) {
	w := watch{}
	for {
		pause := s.cfg.Lease / looksPerLease
		if err := s.recoverOnce(ctx, w, time.Now()); err == nil {
			pause = w.pause(s.cfg.Lease, time.Now())
		} else if ctx.Err() == nil {
			s.log.WarnContext(ctx, "answers of a server that was killed could not be stored yet", "error", err)
		}
		select {
		case <-time.After(max(pause, time.Millisecond)):
		case <-ctx.Done():
			return
		}
	}
}

// looksPerLease is how often Recover looks for new checkpoints within a lease.
const looksPerLease = 3

// A watch knows since when checkpoints have not been saved again, by this
// server's clock: clocks of several servers are never compared.
type watch map[key]sighting

type sighting struct{ savedAt, since time.Time }

// pause is how long it is until the next look: at the end of a lease there is one,
// and not only a third of a lease later.
func (w watch) pause(lease time.Duration, now time.Time) time.Duration {
	pause := lease / looksPerLease
	for _, seen := range w {
		pause = min(pause, seen.since.Add(lease).Sub(now))
	}
	return pause
}

// recoverOnce looks at the checkpoints, and stores those that their servers left.
// One that can't be stored, because its conversation is locked, say, keeps none of
// the others. Where the database was away it forgets what it saw: no server could
// give a sign of life.
func (s *Service) recoverOnce(ctx context.Context, w watch, now time.Time) (failed error) {
	list, err := s.listCheckpoints(ctx, w, now)
	if err != nil {
		return err
	}
	there := make(map[key]bool, len(list))
	for _, c := range list {
		k := key{c.TenantID, c.ConversationID, c.MessageID}
		if r := s.hub.find(k); r != nil && r.runs() {
			continue
		}
		there[k] = true
		seen := w[k]
		if !seen.savedAt.Equal(c.SavedAt) {
			seen = sighting{c.SavedAt, now}
			w[k] = seen
		}
		if c.ServerID != s.cfg.ServerID && now.Sub(seen.since) < s.cfg.Lease {
			continue
		}
		if err := s.take(ctx, c); err != nil {
			failed = errors.Join(failed, err)
			if _, err := s.listCheckpoints(ctx, w, now); err != nil {
				return errors.Join(failed, err)
			}
			continue
		}
		delete(there, k)
	}
	for k := range w {
		if !there[k] {
			delete(w, k)
		}
	}
	return failed
}

// listCheckpoints lists those of all servers.
func (s *Service) listCheckpoints(ctx context.Context, w watch, now time.Time) ([]tree.Checkpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	err := s.store.ForgetReplyStates(ctx, now.Add(-keepEnded))
	var list []tree.Checkpoint
	if err == nil {
		list, err = s.store.Checkpoints(ctx)
	}
	if err != nil {
		clear(w)
	}
	return list, err
}

// take stores what is left of a reply.
func (s *Service) take(ctx context.Context, c tree.Checkpoint) error {
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	m, stored, err := s.store.TakeCheckpoint(ctx, c, interrupted)
	if err == nil {
		s.log.InfoContext(ctx, "an answer was interrupted", "tenant_id", c.TenantID, "conversation_id", c.ConversationID, "message_id", c.MessageID,
			"server_id", c.ServerID, "stored", stored, "tokens", m.Tokens)
	}
	return err
}

// interrupted is the answer that is left of a checkpoint. If nothing had come that
// could be stored, it has no body, and its metadata tell that the reply failed.
// parentID is the last step of the reply, or what it answers.
func interrupted(c tree.Checkpoint, metadata json.RawMessage) (m tree.NewMessage, parentID uuid.UUID) {
	parentID, recalled := lastStep(c)
	end := End{HeadID: c.ParentID, Recalled: recalled, Status: StatusStopped, FinishReason: FinishInterrupted}
	m = tree.NewMessage{ID: c.MessageID, Body: partial(c.Content, c.Refusal), Reasoning: c.Reasoning, CreatedAt: c.SavedAt}
	if m.Body == nil {
		end.Status, end.Err = StatusFailed, errInterrupted
		m.Metadata = lastWord(c.Model, addedIn(metadata), end)
		return m, parentID
	}
	m.Metadata = record(c.Model, addedIn(metadata), llm.Response{}, 0, end)
	return m, parentID
}

// newServerID names a server that brought no name.
func newServerID() string { return uuid.Must(uuid.NewV7()).String() }
