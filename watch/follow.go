package watch

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// A Follower works on what changed, after the commit and in the background.
type Follower struct {
	Name  string        // of its places in the database
	Scans bool          // it is for conversations, too, that were there before it
	Look  time.Duration // between two looks for what nobody told of; 0 is DefaultLook

	// Follow handles conversations that changed since the follower's places, of any
	// tenants, some hundreds at most. It moves the places itself (tree.Feed.Move),
	// of those that it is done with. The others come again: after their next change, and
	// with each look. There is one call at a time on a server. Two servers may have the
	// same conversation, so what Follow writes must be bound to the move of the place,
	// or do no harm twice.
	//
	// After an error Follow is called again for each of the conversations alone. What
	// fails alone comes again with the next look.
	Follow func(ctx context.Context, behind []tree.Pending) error
}

const (
	// DefaultLook is the time between two looks at the feed.
	DefaultLook = 30 * time.Second

	followTogether = 200                   // conversations
	gatherChanges  = 20 * time.Millisecond // before they are handled
	lookShare      = 30                    // a look takes at most one part of so many of the time
	leadLease      = 2 * time.Minute
	shortestLook   = time.Second // after a failure
)

// Follow has a follower handle what changes until ctx is done. What this server's
// own stores change is handled at once. For what others change that don't follow
// (commands, a caller's own transaction, a server that was killed) one server of the
// database looks at the feed, now and every Look. That server also looks at all
// conversations, once, where the follower is new and Scans, or was away for longer
// than the feed holds.
func (h *Hub) Follow(ctx context.Context, f Follower) {
	if f.Look == 0 {
		f.Look = DefaultLook
	}
	l := &following{
		Follower: f, hub: h, store: h.cfg.Store, waiting: newWaiting(),
		lead: tree.Lead{Follower: f.Name, ServerID: cmp.Or(h.cfg.ServerID, h.id), Lease: max(leadLease, 4*f.Look), Scans: f.Scans},
	}
	h.mu.Lock()
	h.follow = append(h.follow, l.waiting)
	h.mu.Unlock()
	l.run(ctx)
	h.mu.Lock()
	h.follow = slices.DeleteFunc(h.follow, func(w *waiting) bool { return w == l.waiting })
	h.mu.Unlock()
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = l.lead.Leave(ended, l.store) // else its lease runs out
}

// following is a Follower at work.
type following struct {
	Follower
	hub     *Hub
	store   *tree.Store
	waiting *waiting
	lead    tree.Lead

	// Of a look, which has many pages.
	after    uuid.UUID     // the last conversation that it came to in the feed
	fed      bool          // it has been through the feed
	took     time.Duration // so far
	failed   bool
	failures int // looks in a row
}

func (l *following) run(ctx context.Context) {
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.waiting.ready:
			select {
			case <-ctx.Done():
				return
			case <-time.After(gatherChanges):
			}
			if err := l.handle(ctx, l.waiting.take(followTogether)); err != nil {
				l.warn(ctx, err)
				look.Reset(shortestLook)
			}
		case <-look.C:
			start := time.Now()
			more, err := l.look(ctx)
			if err != nil {
				l.warn(ctx, err)
			}
			if l.took += time.Since(start); more {
				look.Reset(0) // after what waits
			} else {
				look.Reset(l.pause())
			}
		}
	}
}

func (l *following) warn(ctx context.Context, err error, args ...any) {
	l.failed = true
	if ctx.Err() == nil {
		l.hub.cfg.Logger.WarnContext(ctx, "what changed is followed later", append([]any{"follower", l.Name, "error", err}, args...)...)
	}
}

// pause ends a look, and returns the time until the next.
func (l *following) pause() time.Duration {
	pause := max(l.Look, lookShare*l.took)
	if l.failures++; !l.failed {
		l.failures = 0
	}
	if l.failures > 0 {
		pause = min(shortestLook<<min(l.failures-1, 10), pause)
	}
	l.after, l.fed, l.took, l.failed = uuid.Nil, false, 0, false
	return pause
}

// look looks at the next page of the feed, and behind its end at the next page of
// all conversations where those are to be looked at. It reports whether there is
// more.
func (l *following) look(ctx context.Context) (more bool, err error) {
	leads, scans, scanned, err := l.lead.Renew(ctx, l.store)
	if err != nil || !leads {
		return false, err
	}
	if !l.fed {
		page, err := l.store.Feed().ChangedConversations(ctx, l.after, followTogether)
		if err != nil || len(page) == 0 && !scans {
			return false, err
		}
		if err := l.handle(ctx, page); err != nil {
			return false, err
		}
		if l.fed = len(page) < followTogether; !l.fed {
			l.after = page[len(page)-1]
		}
		return !l.fed || scans, nil
	}
	page, err := l.store.Feed().AllConversations(ctx, scanned, followTogether)
	if err != nil {
		return false, err
	}
	if err := l.handle(ctx, page); err != nil {
		return false, err
	}
	if scanned = uuid.Nil; len(page) == followTogether {
		scanned = page[len(page)-1]
	}
	return scanned != uuid.Nil, l.lead.Scanned(ctx, l.store, scanned)
}

// handle handles the conversations among these that the follower is behind in. Its
// error is the database's: what speaks against single conversations is logged.
func (l *following) handle(ctx context.Context, ids []uuid.UUID) error {
	behind, err := l.store.Feed().Pending(ctx, l.Name, ids)
	if err != nil || len(behind) == 0 {
		return err
	}
	err = l.Follow(ctx, behind)
	switch {
	case err == nil:
		return nil
	case len(behind) == 1:
		return l.alone(ctx, behind[0], err)
	}
	for _, b := range behind {
		if err := l.Follow(ctx, []tree.Pending{b}); err != nil {
			if err := l.alone(ctx, b, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// alone takes note that one conversation failed. It gives the error back if the
// database is away.
func (l *following) alone(ctx context.Context, b tree.Pending, failed error) error {
	if err := l.store.Ping(ctx); err != nil {
		return failed
	}
	l.warn(ctx, failed, "conversation_id", b.ConversationID)
	return nil
}
