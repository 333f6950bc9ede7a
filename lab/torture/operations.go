package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/summarize/prompt"
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

// graft brings to a branch, in a text of its own, what another one said since the two
// parted.
func (w *writer) graft(ctx context.Context, c *conversation, standing []*message) bool {
	head, from := w.tip(standing), w.some(standing)
	path := c.known(head)
	if head.role == "tool" || len(head.calls) > 0 || slices.ContainsFunc(path, func(m *message) bool { return m.id == from.id }) {
		return false
	}
	m := w.newMessage(head, "user")
	text := m.content
	m.grafted, m.pinned, m.content = true, false, chat.Read(prompt.WrapGraft(text)).Text()
	c.add(m)
	body := map[string]any{"id": m.id, "from_head_id": from.id, "text": text}
	a, attempts := w.persist(ctx, w.rng, c.to(http.MethodPost, "/branches/"+head.id.String()+"/grafts", body)) // either may be pruned
	c.mu.Lock()
	defer c.mu.Unlock()
	m.retried = attempts > 1
	gone := c.mayBePruned(head) || c.mayBePruned(from)
	switch {
	case a.outcome() == acknowledged:
		var got shown
		if err := json.Unmarshal(a.body, &got); err != nil {
			c.violate("append", "a graft is answered by %s", clip(string(a.body), 300))
		}
		c.checkShown(m, got, "the answer to its graft")
		c.acknowledge(m)
		w.report.checked("grafts", 1)
	case a.outcome() == refused && !a.again() && gone:
		if m.state = refused; m.retried {
			m.state = unknown
		}
	case a.outcome() == refused && !a.again():
		m.state = refused
		c.violate("append", "the graft %s of %s was refused: %s", m.id, from.id, a.body)
	default:
		m.state = unknown
	}
	return true
}

// rate rates a message, and labels it by its id.
func (w *writer) rate(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.some(standing)
	a, _ := w.persist(ctx, w.rng, c.on(m, http.MethodPatch, "/messages/{}", map[string]any{"rating": 1, "label": m.id}))
	if a.outcome() == acknowledged {
		c.mu.Lock()
		defer c.mu.Unlock()
		m.rated = true
		w.report.checked("ratings", 1)
	}
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
