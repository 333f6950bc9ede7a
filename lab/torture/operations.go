package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// gone checks an answer that says that a message isn't there: a client must have
// asked to prune it.
func (r *run) gone(c *conversation, m *message, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mayBePruned(m) && c.deleted == refused {
		r.report.violate("lost", "conversation %s: %s: message %s isn't there, was acknowledged and never pruned", c.id, what, m.id)
	}
}

// create makes a conversation.
func (r *run) create(ctx context.Context, t *tenant) *conversation {
	c := newConversation(t)
	r.mu.Lock()
	r.all = append(r.all, c)
	number := len(r.all)
	r.mu.Unlock()
	body := map[string]any{"id": c.id, "title": fmt.Sprint("torture ", number), "settings": json.RawMessage(fmt.Sprintf(`{"anchor_slack_turns":%d}`, 1+number%2))}
	a, attempts := r.persist(ctx, r.rng("create", number), request{tenant: t, method: http.MethodPost, path: "/v1/conversations", body: body})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = a.outcome()
	r.report.operation("create", c.state, attempts)
	return c
}

// deleteOwn makes a conversation with a few messages, and deletes it.
func (w *writer) deleteOwn(ctx context.Context, c *conversation, _ []*message) bool {
	if c = w.create(ctx, c.tenant); !c.stands() {
		return true
	}
	w.appendChain(ctx, c, nil, "user", "assistant")
	w.delete(ctx, c)
	return true
}

func (r *run) delete(ctx context.Context, c *conversation) {
	c.mu.Lock()
	c.deleted = sent
	c.mu.Unlock()
	a, attempts := r.persist(ctx, r.rng("delete", int(r.choice.Add(1))), request{tenant: c.tenant, method: http.MethodDelete, path: c.path()})
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case a.outcome() == acknowledged, a.code == "conversation_not_found" && attempts > 1:
		c.deleted = acknowledged
	case a.code == "conversation_not_found":
		r.report.violate("lost", "conversation %s isn't there to delete, and was acknowledged", c.id)
	default:
		c.deleted = unknown
	}
	r.report.operation("delete", a.outcome(), attempts)
}

// prune prunes a message with all below it, mostly one that isn't near a root.
func (w *writer) prune(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.some(standing)
	c.mu.Lock()
	if !m.clean() || m.depth < 3 && w.rng.IntN(10) > 0 {
		c.mu.Unlock()
		return false
	}
	if m.pruneSentAt.IsZero() {
		m.pruneSentAt = time.Now()
	}
	m.prunes++
	c.mu.Unlock()
	a, attempts := w.persist(ctx, w.rng, request{tenant: c.tenant, method: http.MethodDelete, path: c.path() + "/messages/" + m.id.String()})
	w.report.operation("prune", a.outcome(), attempts)
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.outcome() != acknowledged && a.code != "message_not_found" {
		return true
	}
	if a.outcome() == refused && attempts == 1 && m.prunes == 1 && !c.mayBePruned(c.messages[m.parent]) {
		w.report.violate("lost", "conversation %s: message %s isn't there to prune, was acknowledged and never pruned", c.id, m.id)
	}
	if m.prunedAt.IsZero() {
		m.prunedAt = time.Now()
	}
	w.report.checked("prunes", 1)
	return true
}

// fork makes a conversation of a branch. Sometimes writers go on with it in place
// of another one.
func (w *writer) fork(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.some(standing)
	f := newConversation(c.tenant)
	f.source = c.known(m)
	w.mu.Lock()
	w.all = append(w.all, f)
	w.mu.Unlock()
	q := request{tenant: c.tenant, method: http.MethodPost, path: c.path() + "/messages/" + m.id.String() + "/fork", body: map[string]any{"id": f.id}}
	a, attempts := w.persist(ctx, w.rng, q)
	w.report.operation("fork", a.outcome(), attempts)
	if a.code == "message_not_found" {
		w.gone(c, m, "fork")
	}
	f.mu.Lock()
	if f.state = a.outcome(); f.state == refused && attempts > 1 {
		f.state = unknown
	}
	made := f.state == acknowledged
	f.mu.Unlock()
	if !made {
		return true
	}
	w.checkConversation(ctx, f)
	if f.stands() && w.rng.IntN(4) == 0 {
		w.mu.Lock()
		if i := w.rng.IntN(len(w.shared)); w.shared[i].tenant == f.tenant {
			w.shared[i] = f
		}
		w.mu.Unlock()
	}
	w.report.checked("forks", 1)
	return true
}

// compact asks for a compaction.
func (w *writer) compact(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.tip(c, standing)
	if m.depth < 8 {
		return false
	}
	body := map[string]any{"keep_recent_messages": 1 + w.rng.IntN(6)}
	a := w.do(ctx, request{tenant: c.tenant, server: anyServer, method: http.MethodPost, path: c.on(m, "compactions"), body: body, drop: w.rng})
	if a.code == "message_not_found" {
		w.gone(c, m, "compaction")
	}
	w.report.operation("compact", a.outcome(), 1)
	return true
}
