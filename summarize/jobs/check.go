package jobs

import (
	"context"
	"sync"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// Compactions is the name of the follower that FollowCompactions is.
const Compactions = "compactions"

// FollowCompactions queues a job for each of the conversations in which a branch that
// grew is due, and moves the places of the others. It queues the jobs of titles, too:
// what it reads tells where a first answer came.
func (w *Worker) FollowCompactions(ctx context.Context, behind []tree.Pending) (err error) {
	defer db.Wrap(&err, "jobs.Worker.FollowCompactions(%d conversations)", len(behind))
	return w.follow(ctx, Compactions, behind, func(p tree.Pending, g tree.Growth) (river.JobArgs, error) {
		for _, b := range g.Branches {
			if w.QueuesTitles() && b.AnsweredBy != "" && summarize.FirstAnswer(b.Depth) {
				if _, err := w.river.Insert(ctx, titling{p.TenantID, p.ConversationID, b.HeadID}, nil); err != nil {
					return nil, err
				}
			}
		}
		due, err := w.check(ctx, p, g)
		switch {
		case summarize.TroubleOf(ctx, err) == summarize.TroubleGone: // pruned or deleted meanwhile: that is a change, too
			return nil, nil
		case err != nil || due == uuid.Nil:
			return nil, err
		}
		return job{p.TenantID, p.ConversationID, due}, nil
	})
}

// follow queues the jobs of conversations that a follower is behind in, and moves the
// places of those that need none. A job moves its place itself.
func (w *Worker) follow(ctx context.Context, follower string, behind []tree.Pending, jobFor func(tree.Pending, tree.Growth) (river.JobArgs, error)) error {
	feed := tree.New(w.pool).Feed()
	grown, err := feed.Growths(ctx, behind...)
	if err != nil {
		return err
	}
	var quiet []tree.Pending
	for i, p := range behind {
		args, err := jobFor(p, grown[i])
		if err != nil {
			return err
		}
		if args == nil {
			quiet = append(quiet, p)
		} else if _, err := w.river.Insert(ctx, args, nil); err != nil {
			return err
		}
	}
	_, err = feed.Move(ctx, follower, quiet...)
	return err
}

// check returns the head of a branch that is due, or uuid.Nil.
func (w *Worker) check(ctx context.Context, p tree.Pending, g tree.Growth) (due uuid.UUID, err error) {
	was := w.standings.of(p)
	if was.due != uuid.Nil {
		return was.due, nil // its job looks at the others as well
	}
	now := standings{sequence: p.Sequence, heads: map[uuid.UUID]*summarize.Standing{}}
	if !g.Reshaped {
		now.heads = was.heads
	}
	leaves := map[uuid.UUID]bool{}
	for _, b := range g.Leaves() {
		leaves[b.HeadID] = true
	}
	service := w.service.ForTenant(p.TenantID)
	for _, b := range g.Branches { // a parent before its children
		known := now.heads[b.ParentID]
		if known == nil && !leaves[b.HeadID] {
			continue
		}
		if leaves[b.HeadID] {
			is, standing, err := service.Check(ctx, p.ConversationID, g, b, known)
			if err != nil {
				return uuid.Nil, err
			}
			if known = standing; is {
				w.standings.put(p.ConversationID, standings{sequence: p.Place, due: b.HeadID})
				return b.HeadID, nil
			}
		}
		if known != nil {
			now.add(b.HeadID, known)
		}
	}
	w.standings.put(p.ConversationID, now)
	return uuid.Nil, nil
}

// standings are what is known of a conversation's branches.
type standings struct {
	sequence int64     // of the change up to which it is true; a later place is another server's, and what it saw isn't known here
	due      uuid.UUID // a branch has a job; uuid.Nil: none
	heads    map[uuid.UUID]*summarize.Standing
}

const mostHeads = 32 // of a conversation, that are remembered

func (s *standings) add(head uuid.UUID, standing *summarize.Standing) {
	if len(s.heads) >= mostHeads {
		clear(s.heads)
	}
	s.heads[head] = standing
}

// standingCache remembers standings, so that most checks read nothing. It forgets the
// older half of the conversations when it is full.
type standingCache struct {
	mu       sync.Mutex
	now, old map[uuid.UUID]standings
}

const standingCacheSize = 8192

// of returns what is known where the follower's place is.
func (c *standingCache) of(p tree.Pending) standings {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.now[p.ConversationID]
	if !ok {
		known = c.old[p.ConversationID]
	}
	if known.sequence != p.Place || known.heads == nil {
		known.heads = map[uuid.UUID]*summarize.Standing{}
	}
	if known.sequence != p.Place {
		known.due = uuid.Nil
	}
	return known
}

func (c *standingCache) put(conversation uuid.UUID, s standings) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || len(c.now) >= standingCacheSize {
		c.now, c.old = make(map[uuid.UUID]standings, standingCacheSize), c.now
	}
	c.now[conversation] = s
}
