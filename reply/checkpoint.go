package reply

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tree"
)

// FinishInterrupted is the finish reason of an answer whose server was killed.
const FinishInterrupted = "interrupted"

const (
	saveTimeout    = 5 * time.Second
	recoverTimeout = 30 * time.Second // of one look at the checkpoints
)

// saveWhile saves what came of a reply again and again, until stop is called.
// Stop tells whether something may have been saved. A reply that is shorter than
// the interval costs nothing.
func (s *Service) saveWhile(r *Reply, a *assignment) (stop func() (saved bool)) {
	if a.unstored {
		return func() bool { return false }
	}
	over, result := make(chan struct{}), make(chan bool)
	go func() {
		ticker := time.NewTicker(s.cfg.CheckpointEvery)
		defer ticker.Stop()
		saved := false
		for {
			select {
			case <-ticker.C:
				select {
				case <-r.prepared:
				default:
					continue // its question is not stored yet
				}
				if !saved && len(r.metadata) > 0 && !a.request.Background { // which has told it
					s.tell(r, tree.StateRunning, members(r.metadata))
				}
				s.save(r, a)
				saved = true
				s.heed(r, a)
			case <-over:
				result <- saved
				return
			}
		}
	}()
	return func() bool {
		close(over)
		return <-result
	}
}

// save saves what came until now. Where nothing came, or nothing is new, it is a
// sign of life all the same. It tells whether it was saved.
func (s *Service) save(r *Reply, a *assignment) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), saveTimeout)
	defer cancel()
	err := s.saveOnce(ctx, r, a)
	if err != nil {
		s.log.WarnContext(ctx, "what came of an answer could not be saved yet", "conversation_id", r.conversation, "message_id", r.messageID, "error", err)
	}
	return err == nil
}

func (s *Service) saveOnce(ctx context.Context, r *Reply, a *assignment) error {
	content, refusal := r.text()
	reasoning, _ := r.thought()
	return s.store.SaveCheckpoint(ctx, tree.Checkpoint{
		ConversationID: r.conversation, MessageID: r.messageID, ParentID: a.head, MoveHeadFrom: a.active,
		ServerID: s.cfg.ServerID, Model: r.model, Content: content, Refusal: refusal, Reasoning: reasoning,
	})
}

// dropSaved deletes the checkpoint of a reply that ended, and tells of one in the
// background how it ended where nothing is stored that does. It leaves them where the
// answer could not be stored because the database was away: then the checkpoint is
// what is left, and Recover stores it.
func (s *Service) dropSaved(r *Reply, a *assignment, end End) {
	content, refusal := r.text()
	if end.Message == nil && !fault.Refused(end.Err) && partial(content, refusal) != nil {
		return
	}
	switch {
	case end.Message == nil && a.request.Background:
		s.tell(r, tree.StateEnded, record(r.model, r.metadata, llm.Response{}, 0, end))
	case len(r.metadata) > 0 || a.request.Background:
		s.untell(r)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), saveTimeout)
	defer cancel()
	if err := s.store.DropCheckpoint(ctx, r.conversation, r.messageID); err != nil {
		s.log.WarnContext(ctx, "a checkpoint was not deleted yet", "conversation_id", r.conversation, "message_id", r.messageID, "error", err)
	}
}

// Recover stores the answers, of every tenant, that were streaming when their
// server was killed, as far as they had come. It works until ctx is done. Run
// it once in a program. It takes up the answers of the server that
// Config.ServerID names at once, and answers of another server after
// Config.Lease. Several servers may run it at a time: each answer is stored
// once.
func (s *Service) Recover(ctx context.Context) {
	ticker := time.NewTicker(max(s.cfg.Lease/3, time.Millisecond))
	defer ticker.Stop()
	w := watch{}
	for {
		if err := s.recoverOnce(ctx, w, time.Now()); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "answers of a server that was killed could not be stored yet", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// A watch knows since when checkpoints have not been saved again, by this
// server's clock: clocks of several servers are never compared.
type watch map[key]sighting

type sighting struct{ savedAt, since time.Time }

// recoverOnce looks at the checkpoints, and stores those that their servers left.
// After an error it forgets what it saw: while the database was away, no server
// could give a sign of life.
func (s *Service) recoverOnce(ctx context.Context, w watch, now time.Time) (err error) {
	defer func() {
		if err != nil {
			clear(w)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	if err := s.store.ForgetReplyStates(ctx, now.Add(-keepEnded)); err != nil {
		return err
	}
	list, err := s.store.Checkpoints(ctx)
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
		m, stored, err := s.takeUp(ctx, c)
		if err != nil {
			return err
		}
		s.log.InfoContext(ctx, "an answer was interrupted", "tenant_id", c.TenantID, "conversation_id", c.ConversationID, "message_id", c.MessageID,
			"server_id", c.ServerID, "stored", stored, "tokens", m.Tokens)
	}
	for k := range w {
		if !there[k] {
			delete(w, k)
		}
	}
	return nil
}

// interrupted is the answer that is left of a checkpoint.
func interrupted(c tree.Checkpoint) tree.NewMessage {
	return tree.NewMessage{
		ID: c.MessageID, Body: partial(c.Content, c.Refusal), Reasoning: c.Reasoning, CreatedAt: c.SavedAt,
		Metadata: record(c.Model, nil, llm.Response{}, 0, End{Status: StatusStopped, FinishReason: FinishInterrupted}),
	}
}

// newServerID names a server that brought no name.
func newServerID() string { return uuid.Must(uuid.NewV7()).String() }
