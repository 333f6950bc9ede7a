package watch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// A Watch gets the changes of one conversation, or of all of a tenant's. One
// goroutine reads it.
type Watch struct {
	hub          *Hub
	tenant       string
	hash         string    // of the tenant
	conversation uuid.UUID // uuid.Nil for all

	id      int64 // of the event that says that the stream began
	resumed bool

	mu      sync.Mutex
	began   time.Time           // changes of conversations that aren't in seen are from then on, about
	seen    map[uuid.UUID]int64 // newest changes that came by other ways, or that the reader doesn't want
	waits   bool                // for seen
	queue   []tree.Change
	changed chan struct{}
	err     error
}

// Watch begins to watch a conversation of a tenant's, or all of them where that
// is uuid.Nil. With last, the id of an event, it goes on after that event: exactly
// after it for a conversation, and some seconds before it for a tenant, because
// changes of several conversations are committed in another order than their times
// say. A Watch that can't go on, because what was missed is too old or too much,
// begins now; see Started.
func (h *Hub) Watch(ctx context.Context, tenantID string, conversationID uuid.UUID, last *int64) (*Watch, error) {
	w := &Watch{
		hub: h, tenant: tenantID, hash: hashOf(tenantID), conversation: conversationID, changed: make(chan struct{}, 1),
		began: time.Now(), waits: true, seen: map[uuid.UUID]int64{},
	}
	store := h.cfg.Store.ForTenant(tenantID)
	if conversationID != uuid.Nil { // before anything is read for it
		if _, err := store.Feed().ChangeCount(ctx, conversationID); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	if h.ended {
		h.mu.Unlock()
		return nil, ErrClosed
	}
	h.watches[w] = true
	if h.stop == nil {
		h.begin()
	}
	h.mu.Unlock()
	missed, err := w.catchUp(ctx, store, last)
	if err != nil {
		w.Close()
		return nil, err
	}
	if h.cfg.Before != nil { // what was missed, or is read anew
		h.cfg.Before(ctx, tenantID, conversationID)
	}
	w.settle(missed)
	return w, nil
}

// catchUp reads what was missed since an event, and notes from where on changes
// are new to the reader. The Watch is in the hub by then, so that nothing falls in
// between.
func (w *Watch) catchUp(ctx context.Context, store *tree.Store, last *int64) ([]tree.Change, error) {
	if w.conversation != uuid.Nil {
		count, err := store.Feed().ChangeCount(ctx, w.conversation)
		if err != nil {
			return nil, err
		}
		w.id, w.seen[w.conversation] = count, count
		if last == nil || *last > count {
			return nil, nil
		}
		missed, err := store.Feed().Changes(ctx, w.conversation, *last, time.Time{}, maxQueue)
		complete := *last == count || len(missed) > 0 && missed[0].Sequence == *last+1 && len(missed) < maxQueue
		// Rows of a conversation of the same id that was deleted may be another tenant's.
		foreign := slices.ContainsFunc(missed, func(c tree.Change) bool { return c.TenantID != w.tenant })
		if err != nil || !complete || foreign {
			return nil, err
		}
		w.id, w.resumed = *last, true
		return missed, nil
	}
	w.id = w.began.UnixMicro()
	if last != nil {
		at := time.UnixMicro(*last)
		if w.began.Sub(at) < tree.KeepChanges && at.Sub(w.began) < overlap {
			missed, err := store.Feed().TenantChanges(ctx, at.Add(-overlap), maxQueue)
			if err != nil || len(missed) < maxQueue {
				w.id, w.resumed = *last, true
				return missed, err
			}
		}
	}
	seen, err := store.Feed().TenantChanged(ctx, w.began.Add(-overlap))
	w.seen = seen
	return nil, err
}

// settle puts what was missed before what has come since.
func (w *Watch) settle(missed []tree.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range missed {
		w.seen[c.ConversationID] = max(w.seen[c.ConversationID], c.Sequence)
	}
	came := w.queue
	w.queue, w.waits = missed, false
	for _, c := range came {
		w.push(c)
	}
	if len(w.queue) > 0 {
		w.ring()
	}
}

// Started returns the id of the event that tells of the beginning, and whether the
// Watch goes on after the event that it was to go on after. Where it doesn't, the
// reader has to read anew what it shows.
func (w *Watch) Started() (id int64, resumed bool) { return w.id, w.resumed }

// ID is the id of a change's event, from which another Watch goes on.
func (w *Watch) ID(c tree.Change) int64 {
	if w.conversation != uuid.Nil {
		return c.Sequence
	}
	return c.At.UnixMicro()
}

// covers tells whether a conversation may have changes for the Watch.
func (w *Watch) covers(key conversationKey) bool {
	if w.conversation != uuid.Nil {
		return w.conversation == key.conversation
	}
	return w.hash == key.tenant
}

// add passes a change on to the Watch, if it is for it.
func (w *Watch) add(c tree.Change) {
	if c.TenantID != w.tenant || w.conversation != uuid.Nil && w.conversation != c.ConversationID {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
	case len(w.queue) >= 2*maxQueue: // what was missed included
		w.queue, w.err = nil, ErrSlow
		w.ring()
	case w.waits:
		w.queue = append(w.queue, c)
	default:
		w.push(c)
	}
}

// push queues a change that is new to the reader.
func (w *Watch) push(c tree.Change) {
	if c.Sequence <= w.seen[c.ConversationID] || c.At.Before(w.began.Add(-overlap)) && !w.resumed {
		return
	}
	w.queue = append(w.queue, c)
	w.ring()
}

// ring lets Next look.
func (w *Watch) ring() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *Watch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.ring()
}

// Next waits for changes and returns all that came. It returns ErrClosed or
// ErrSlow where no more will come.
func (w *Watch) Next(ctx context.Context) ([]tree.Change, error) {
	for {
		w.mu.Lock()
		came, err := w.queue, w.err
		w.queue = nil
		w.mu.Unlock()
		switch {
		case len(came) > 0:
			return came, nil
		case err != nil:
			return nil, err
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close ends the Watch. The Hub reads nothing any more after its last Watch.
func (w *Watch) Close() {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watches, w)
	if len(h.watches) == 0 {
		h.rest()
	}
}

// Deleted reports whether the changes say that the Watch's conversation is gone.
func (w *Watch) Deleted(changes []tree.Change) bool {
	return w.conversation != uuid.Nil && slices.ContainsFunc(changes, func(c tree.Change) bool { return c.Kind == tree.ConversationDeleted })
}

// Missed returns what came until now, without waiting.
func (w *Watch) Missed() []tree.Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	came := w.queue
	w.queue = nil
	return came
}
