package watch

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// begin starts reading for the first Watch. It runs under the lock.
func (h *Hub) begin() {
	ctx, stop := context.WithCancel(context.Background())
	h.stop, h.since = stop, time.Now()
	look := make(chan time.Duration, 1) // how long to wait between two looks from now on
	look <- h.cfg.Poll
	if h.cfg.Signals != nil {
		h.readers.Go(func() { h.listen(ctx, look) })
	} else if !h.logged {
		h.logged = true
		h.cfg.Logger.Info("changes made by other programs are looked for, as connections to Postgres lead through a pooler", "interval", h.cfg.Poll)
	}
	since := h.since
	h.readers.Go(func() { h.read(ctx, look, since) })
}

// listen hears what other servers tell, on a connection that is made anew when it
// breaks.
func (h *Hub) listen(ctx context.Context, look chan time.Duration) {
	set := func(every time.Duration) {
		select {
		case <-look:
		default:
		}
		look <- every
	}
	for warned := false; ; {
		err := h.cfg.Signals.Listen(ctx, func() {
			warned = false
			set(slowPoll) // which looks at once for what changed before
		}, h.heard)
		if ctx.Err() != nil {
			return
		}
		if !warned {
			warned = true
			h.cfg.Logger.WarnContext(ctx, "changes made by other servers are looked for, until Postgres tells of them again", "interval", h.cfg.Poll, "error", err)
		}
		set(h.cfg.Poll)
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return
		}
	}
}

// read passes on what changed, until ctx is done.
func (h *Hub) read(ctx context.Context, look <-chan time.Duration, since time.Time) {
	every := h.cfg.Poll
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		now := time.Now()
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		case every = <-look:
			since = h.poll(ctx, since, now)
			timer.Reset(every)
		case <-timer.C:
			since = h.poll(ctx, since, time.Now())
			timer.Reset(every)
		}
		for key := range h.take() {
			if err := h.readOne(ctx, key); err != nil {
				if ctx.Err() != nil {
					return
				}
				h.cfg.Logger.WarnContext(ctx, "what changed could not be read yet", "conversation_id", key.conversation, "error", err)
				h.mu.Lock()
				h.unread[key] = true // for the next look
				h.mu.Unlock()
			}
		}
	}
}

func (h *Hub) take() map[conversationKey]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := h.unread
	h.unread = map[conversationKey]bool{}
	return taken
}

// poll looks which of the watched conversations changed since it looked last, and
// returns the time of this look, or of the last where it failed.
func (h *Hub) poll(ctx context.Context, since, now time.Time) time.Time {
	h.mu.Lock()
	var tenants []string
	var conversations []uuid.UUID
	for w := range h.watches {
		if w.conversation != uuid.Nil {
			conversations = append(conversations, w.conversation)
		} else {
			tenants = append(tenants, w.tenant)
		}
	}
	if len(h.told) > mostTold {
		for id, t := range h.told {
			if now.Sub(t.at) > 2*tree.KeepChanges {
				delete(h.told, id)
			}
		}
	}
	h.mu.Unlock()
	changed, err := h.cfg.Store.Feed().Changed(ctx, since.Add(-overlap), slices.Compact(slices.Sorted(slices.Values(tenants))), conversations)
	if err != nil {
		if ctx.Err() == nil {
			h.cfg.Logger.DebugContext(ctx, "what changed could not be looked for", "error", err)
		}
		return since
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, sequence := range changed {
		if h.told[id].sequence != sequence {
			h.unread[conversationKey{conversation: id}] = true
		}
	}
	return now
}

// readOne reads what changed in a conversation, and passes it on.
func (h *Hub) readOne(ctx context.Context, key conversationKey) error {
	for {
		h.mu.Lock()
		last, since := h.told[key.conversation], h.since
		h.mu.Unlock()
		if oldest := time.Now().Add(-tree.KeepChanges); since.Before(oldest) {
			since = oldest
		}
		changes, err := h.cfg.Store.Feed().Changes(ctx, key.conversation, last.sequence, since.Add(-overlap), atOnce)
		if err != nil || len(changes) == 0 {
			return err
		}
		if h.cfg.Before != nil {
			h.cfg.Before(ctx, changes[0].TenantID, key.conversation)
		}
		h.mu.Lock()
		if h.told[key.conversation] != last { // another reader was faster
			h.mu.Unlock()
			continue
		}
		for _, c := range changes {
			for w := range h.watches {
				w.add(c)
			}
		}
		newest := changes[len(changes)-1]
		h.told[key.conversation] = told{newest.Sequence, newest.At}
		h.mu.Unlock()
		if len(changes) < atOnce {
			return nil
		}
	}
}
