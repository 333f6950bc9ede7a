package reply

import (
	"context"
	"errors"
	"maps"
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
	listTimeout = 30 * time.Second // of the list of replies
	takeTimeout = 5 * time.Second  // of one of them

	// keepEnded is how long it is told of a reply how it ended, where nothing is
	// stored that tells it.
	keepEnded = time.Hour

	looksPerLease = 3 // of Recover
)

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

// A watch knows since when replies gave no new sign of life, by this server's clock:
// clocks of several servers are never compared.
type watch map[sign]time.Time

// A sign is the last sign of life of a reply.
type sign struct {
	key
	aliveAt int64 // in microseconds
}

// pause is how long it is until the next look: at the end of a lease there is one,
// and not only a third of a lease later.
func (w watch) pause(lease time.Duration, now time.Time) time.Duration {
	pause := lease / looksPerLease
	for _, since := range w {
		pause = min(pause, since.Add(lease).Sub(now))
	}
	return pause
}

// recoverOnce looks at the replies, and stores those that their servers left. One
// that can't be stored, because its conversation is locked, say, keeps none of the
// others. Where the database was away it forgets what it saw: no server could give a
// sign of life.
func (s *Service) recoverOnce(ctx context.Context, w watch, now time.Time) (failed error) {
	seen := maps.Clone(w)
	clear(w)
	list, err := s.list(ctx, now)
	if err != nil {
		return err
	}
	for _, row := range list {
		last := sign{key{row.TenantID, row.ConversationID, row.MessageID}, row.AliveAt.UnixMicro()}
		if _, known := s.hub.find(last.key); known {
			continue
		}
		since, before := seen[last]
		if !before {
			since = now
		}
		if row.ServerID != s.cfg.ServerID && now.Sub(since) < s.cfg.Lease {
			w[last] = since
		} else if err := s.ForTenant(row.TenantID).take(ctx, row); err != nil {
			w[last], failed = since, errors.Join(failed, err)
		}
	}
	return failed
}

// list lists the replies of all servers that run, and forgets those that ended long
// ago.
func (s *Service) list(ctx context.Context, now time.Time) ([]tree.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	if err := s.store.Replies().Forget(ctx, now.Add(-s.cfg.Keep), now.Add(-keepEnded)); err != nil {
		return nil, err
	}
	return s.store.Replies().All(ctx)
}

// take takes a reply from its server and stores what is left of it: the answer as far
// as it is in the log, or else that the reply failed.
func (s *Service) take(ctx context.Context, listed tree.Reply) error {
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	row, err := s.store.Replies().Take(ctx, listed, s.cfg.ServerID)
	if errors.Is(err, tree.ErrReplyLost) {
		return nil
	}
	if err != nil {
		return err
	}
	_, saves, err := s.store.Replies().Log(ctx, row.ConversationID, row.MessageID, 0)
	if err != nil {
		return ignoreNotFound(err)
	}
	saved, err := decode(saves, 0)
	if err != nil {
		return err
	}
	m, end, parentID := interrupted(row, saved)
	m.CreatedAt = listed.AliveAt
	stored := m.Message != nil
	if stored {
		options := []tree.AppendOption{tree.MoveHeadFrom(row.MoveHeadFrom), tree.EndsReply(s.cfg.ServerID, tree.ReplyEvents{})}
		if parentID != row.ParentID {
			options = append(options, tree.Behind(row.ParentID))
		}
		_, err = s.store.Append(ctx, row.ConversationID, parentID, m, options...)
		stored = err == nil
	}
	if m.Message == nil || fault.Refused(err) {
		err = s.store.Replies().End(ctx, row, row.ParentID, lastWord(row.Model, addedIn(row.Metadata), end), tree.ReplyEvents{})
	}
	if err != nil && !errors.Is(err, tree.ErrReplyLost) {
		return err
	}
	if stored && s.cfg.Stored != nil {
		s.cfg.Stored(ctx, row.TenantID, row.ConversationID)
	}
	s.log.InfoContext(ctx, "an answer was interrupted", "tenant_id", row.TenantID, "conversation_id", row.ConversationID, "message_id", row.MessageID,
		"server_id", listed.ServerID, "stored", stored)
	return nil
}

// interrupted is the answer that is left in a log, and how its reply ended. If nothing
// came that could be stored, it has no message, and the reply failed. parentID is the
// last step of the reply, or what it answers.
func interrupted(row tree.Reply, saved []savedEvent) (m tree.NewMessage, end End, parentID uuid.UUID) {
	var content, refusal string
	parentID = row.ParentID
	end = End{HeadID: row.ParentID, Status: StatusStopped, FinishReason: FinishInterrupted}
	for _, e := range saved {
		m.Reasoning += e.Reasoning
		content, refusal = content+e.Content, refusal+e.Refusal
		if e.MessageID != nil {
			parentID, end.Recalled = *e.MessageID, end.Recalled+1
		}
	}
	if m.ID, m.Message = row.MessageID, partial(content, refusal); m.Message == nil {
		end.Status, end.Err = StatusFailed, errInterrupted
		return m, end, parentID
	}
	m.Metadata = record(row.Model, addedIn(row.Metadata), llm.Response{}, 0, end)
	return m, end, parentID
}

// newServerID names a server that brought no name.
func newServerID() string { return uuid.Must(uuid.NewV7()).String() }
