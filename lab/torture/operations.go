package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"
)

// gone checks an answer that says that a message isn't there: somebody must
// have asked to prune it.
func (w *run) gone(c *conversation, m *message, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mayBePruned(m) {
		w.report.violate("lost", "conversation %s: %s: message %s isn't there, was acknowledged and never pruned", c.id, what, m.id)
	}
}

func (w *writer) moveHead(ctx context.Context, c *conversation, standing []*message) bool {
	m := standing[w.rng.IntN(len(standing))]
	var got struct {
		HeadID uuid.UUID `json:"head_id"`
	}
	a, attempts := w.persist(ctx, w.rng, func(server int) answer {
		return w.as(c).do(ctx, w.rng, server, http.MethodPatch, w.path(c), map[string]any{"head_id": m.id}, &got)
	})
	switch {
	case a.outcome() == acknowledged && got.HeadID != m.id:
		w.report.violate("head", "conversation %s: the active head was moved to %s, and is %s", c.id, m.id, got.HeadID)
	case a.code == "head_not_found":
		w.gone(c, m, "moving the head")
	}
	w.report.operation("move head", a.outcome(), attempts)
	return true
}

// rename gives a conversation another title, and the metadata and tags that go with it.
func (w *writer) rename(ctx context.Context, c *conversation, _ []*message) bool {
	title := fmt.Sprintf("renamed %d", w.created.Add(1))
	c.renaming.Lock()
	defer c.renaming.Unlock()
	c.mu.Lock()
	c.mayHave(title)
	body := retitled(c.origin, title)
	c.mu.Unlock()
	var got shownConversation
	a := w.as(c).do(ctx, w.rng, w.rng.IntN(len(w.client.programs)), http.MethodPatch, w.path(c), body, &got)
	w.report.operation("rename", a.outcome(), 1)
	if a.outcome() != acknowledged {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.has(title)
	w.report.findings(checkHeader(c, got, "the answer to its rename"))
	if got.Title != title {
		w.report.violate("changed", "conversation %s was renamed %q, and is %q", c.id, title, got.Title)
	}
	return true
}

func (w *writer) compact(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.tip(c, standing)
	if m.depth < 8 {
		return false
	}
	body := map[string]any{"keep_recent_messages": 1 + w.rng.IntN(6)}
	a := w.as(c).do(ctx, w.rng, w.rng.IntN(len(w.client.programs)), http.MethodPost, w.branchPath(c, m, "compactions"), body, nil)
	if a.code == "message_not_found" {
		w.gone(c, m, "compaction")
	}
	w.report.operation("compact", a.outcome(), 1)
	return true
}

// create makes a conversation, and returns it once a server said that it is
// there.
func (w *run) create(ctx context.Context, t *tenant, shared bool) *conversation {
	c := newConversation(uuid.Must(uuid.NewV7()))
	c.shared, c.tenant = shared, t
	number := int(w.created.Add(1))
	c.has(fmt.Sprintf("%s%d", firstTitle, number))
	c.settings = fmt.Sprintf(`{"anchor_slack_turns":%d,"keep_user_cap_tokens":%d}`, 1+number%2, 40+number%40)
	w.register(c)
	rng := w.rng("create", number)
	body := map[string]any{"id": c.id, "title": c.title, "metadata": metadataOf(c.id, c.title), "settings": json.RawMessage(c.settings)}
	var got shownConversation
	a, attempts := w.persist(ctx, rng, func(server int) answer {
		return w.as(c).do(ctx, nil, server, http.MethodPost, "/v1/conversations", body, &got)
	})
	c.mu.Lock()
	if c.state = a.outcome(); c.state == acknowledged {
		w.report.findings(checkHeader(c, got, "the answer to its making"))
	}
	c.mu.Unlock()
	w.report.operation("create", a.outcome(), attempts)
	return c
}

// remove deletes a conversation.
func (w *run) remove(ctx context.Context, c *conversation) {
	c.mu.Lock()
	c.deleted = sent
	c.mu.Unlock()
	rng := w.rng("remove", int(w.created.Add(1)))
	a, attempts := w.persist(ctx, rng, func(server int) answer {
		return w.as(c).do(ctx, nil, server, http.MethodDelete, w.path(c), nil, nil)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case a.outcome() == acknowledged, a.code == "conversation_not_found" && attempts > 1:
		c.deleted = acknowledged
	case a.code == "conversation_not_found":
		w.report.violate("lost", "conversation %s isn't there to delete, and was acknowledged", c.id)
	default:
		c.deleted = unknown
	}
	w.report.operation("delete", a.outcome(), attempts)
}
