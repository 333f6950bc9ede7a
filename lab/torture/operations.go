package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// create makes a conversation.
func (r *run) create(ctx context.Context, t *tenant) *conversation {
	c := newConversation(t, r.report)
	r.mu.Lock()
	r.all[c.id] = c
	number := len(r.all)
	r.mu.Unlock()
	body := map[string]any{"id": c.id, "title": fmt.Sprint("torture ", number), "settings": json.RawMessage(fmt.Sprintf(`{"anchor_slack_turns":%d}`, 1+number%2))}
	a, _ := r.persist(ctx, r.rng("create", number), request{tenant: t, method: http.MethodPost, path: "/v1/conversations", body: body})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = a.outcome()
	return c
}

// deleteOwn makes a conversation with a few messages, and deletes it.
func (w *writer) deleteOwn(ctx context.Context, c *conversation, _ []*message) bool {
	if c = w.create(ctx, c.tenant); c.stands() {
		w.appendChain(ctx, c, nil, "user", "assistant")
		w.delete(ctx, c)
	}
	return true
}

func (r *run) delete(ctx context.Context, c *conversation) {
	c.mu.Lock()
	c.deleted = sent
	c.mu.Unlock()
	a, attempts := r.persist(ctx, r.rng("delete", r.number()), c.to(http.MethodDelete, "", nil))
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case a.outcome() == acknowledged, a.code == "conversation_not_found" && attempts > 1:
		c.deleted = acknowledged
	case a.code == "conversation_not_found":
		c.violate("lost", "it isn't there to delete, and was acknowledged")
	default:
		c.deleted = unknown
	}
}

// prune prunes a message with all below it, mostly one that isn't near a root.
func (w *writer) prune(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.some(standing)
	c.mu.Lock()
	if m.retried || m.depth < 3 && w.rng.IntN(10) > 0 { // a late attempt to send it could store it again
		c.mu.Unlock()
		return false
	}
	if m.pruneSentAt.IsZero() {
		m.pruneSentAt = time.Now()
	}
	c.mu.Unlock()
	a, _ := w.persist(ctx, w.rng, c.on(m, http.MethodDelete, "/messages/{}", nil))
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.outcome() != acknowledged && a.code != "message_not_found" {
		return true
	}
	if m.prunedAt.IsZero() {
		m.prunedAt = time.Now()
	}
	w.report.checked("prunes", 1)
	return true
}

// compact asks for a compaction.
func (w *writer) compact(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.tip(standing)
	if m.depth < 8 {
		return false
	}
	q := c.on(m, http.MethodPost, "/branches/{}/compactions", map[string]any{"keep_recent_messages": 1 + w.rng.IntN(6)})
	q.drop = w.rng
	w.do(ctx, q)
	return true
}
