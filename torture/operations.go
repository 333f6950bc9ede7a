package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

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

// prune prunes a message with all below it.
func (w *writer) prune(ctx context.Context, c *conversation, standing []*message) bool {
	m := standing[w.rng.IntN(len(standing))]
	return m.depth >= 3 && w.pruneMessage(ctx, c, m, "prune")
}

// pruneShallow prunes a message near a root, with which most goes; now and then
// a root.
func (w *writer) pruneShallow(ctx context.Context, c *conversation, standing []*message) bool {
	m := standing[w.rng.IntN(len(standing))]
	if m.depth > 3 {
		return false
	}
	kind := "prune"
	if m.depth == 0 {
		kind = "prune a root"
	}
	return w.pruneMessage(ctx, c, m, kind)
}

func (w *run) pruneMessage(ctx context.Context, c *conversation, m *message, kind string) bool {
	c.mu.Lock()
	if !m.clean() {
		c.mu.Unlock()
		return false
	}
	now := time.Now()
	least, _ := c.pruneBounds(m, now)
	if m.pruneSentAt.IsZero() {
		m.pruneSentAt = now
	}
	m.prunes++
	c.mu.Unlock()
	rng := w.rng("prune", int(m.mark)+m.prunes)
	var got prunedAnswer
	a, attempts := w.persist(ctx, rng, func(server int) answer {
		return w.as(c).do(ctx, rng, server, http.MethodDelete, w.path(c)+"/messages/"+m.id.String(), nil, &got)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	switch o := a.outcome(); {
	case o == acknowledged || a.code == "message_not_found":
		byOthers := attempts > 1 || m.prunes > 1 || c.mayBePruned(c.messages[m.parent])
		if o == refused && !byOthers {
			w.report.violate("lost", "conversation %s: pruning %s: it isn't there, was acknowledged and never pruned", c.id, m.id)
		}
		if m.prunedAt.IsZero() {
			m.prunedAt = time.Now()
		}
		if o == acknowledged {
			_, most := c.pruneBounds(m, now)
			w.report.findings(checkPruned(c, m, got, least, most))
			w.report.count(func(r *Report) {
				if m.parent == uuid.Nil {
					r.Checks.PrunedRoots++
				} else {
					r.Checks.Pruned++
				}
			})
		}
	}
	w.report.operation(kind, a.outcome(), attempts)
	return true
}

// undo deletes a summary of a branch, so that the one before it applies again.
func (w *writer) undo(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.tip(c, standing)
	var got contextAnswer
	if a := w.as(c).do(ctx, nil, w.any(), http.MethodGet, w.branchPath(c, m, "context"), nil, &got); a.outcome() != acknowledged || got.Summary == nil {
		return false
	}
	w.undoSummary(ctx, c, got.Summary.ID)
	return true
}

func (w *run) undoSummary(ctx context.Context, c *conversation, id uuid.UUID) (done bool) {
	rng := w.rng("undo", int(w.created.Add(1)))
	var got prunedAnswer
	a, attempts := w.persist(ctx, rng, func(server int) answer {
		return w.as(c).do(ctx, rng, server, http.MethodDelete, w.path(c)+"/messages/"+id.String(), nil, &got)
	})
	w.report.operation("undo", a.outcome(), attempts)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case a.outcome() == acknowledged:
		if got.Messages != 0 || got.Summaries != 1 {
			w.report.violate("prune", "conversation %s: undoing the summary %s deleted %d messages and %d summaries", c.id, id, got.Messages, got.Summaries)
		}
		w.report.count(func(r *Report) { r.Checks.Undone++ })
		c.undone[id] = true
		return true
	case a.code == "message_not_found": // by another attempt, another writer, or with a message above it
		c.undone[id] = true
	}
	return false
}

// rename gives a conversation another title, and the metadata that go with it.
func (w *writer) rename(ctx context.Context, c *conversation, _ []*message) bool {
	title := fmt.Sprintf("torture %d", w.created.Add(1))
	c.renaming.Lock()
	defer c.renaming.Unlock()
	c.mu.Lock()
	c.mayHave(title)
	body := map[string]any{"title": title, "metadata": metadataOf(c.origin, title)}
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

// forkBranch makes a conversation of a branch. Now and then writers go on with
// it in place of another one.
func (w *writer) forkBranch(ctx context.Context, c *conversation, standing []*message) bool {
	m := standing[w.rng.IntN(len(standing))]
	fork, a := w.forkMessage(ctx, w.rng, c, m)
	if a.code == "message_not_found" {
		w.gone(c, m, "fork")
	}
	fork.mu.Lock()
	whole := fork.state == acknowledged && fork.fork == nil
	fork.mu.Unlock()
	if whole && w.rng.IntN(4) == 0 {
		w.mu.Lock()
		if i := w.rng.IntN(len(w.shared)); w.shared[i].tenant == fork.tenant {
			w.shared[i] = fork
		}
		w.mu.Unlock()
	}
	return true
}

// forkMessage makes a fork, and reads its tree for the ids that its messages
// have.
func (w *run) forkMessage(ctx context.Context, rng *rand.Rand, c *conversation, m *message) (*conversation, answer) {
	fork := newConversation(uuid.Must(uuid.NewV7()))
	fork.shared, fork.tenant, fork.origin = true, c.tenant, c.origin
	c.mu.Lock()
	fork.fork = &forkOrder{path: known(c.path(m.id))}
	fork.inherited, fork.settings = c.ever, c.settings
	c.mu.Unlock()
	w.register(fork)
	var got shownConversation
	a, attempts := w.persist(ctx, rng, func(server int) answer {
		return w.as(c).do(ctx, rng, server, http.MethodPost, w.path(c)+"/messages/"+m.id.String()+"/fork", map[string]any{"id": fork.id}, &got)
	})
	fork.mu.Lock()
	fork.state = a.outcome()
	switch {
	case fork.state == acknowledged:
		w.report.findings(checkHeader(fork, got, "the answer to its fork"))
		fork.has(got.Title)
	case fork.state == refused && attempts > 1:
		fork.state = unknown
	}
	made := fork.state == acknowledged
	fork.mu.Unlock()
	w.report.operation("fork", a.outcome(), attempts)
	if !made {
		return fork, a
	}
	if tree, read := w.readTree(ctx, fork); read.outcome() == acknowledged {
		fork.mu.Lock()
		fork.fill(fork.fork, tree)
		w.report.findings(checkTree(fork, tree, w.marks))
		fork.mu.Unlock()
	}
	return fork, a
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
	c.has(fmt.Sprintf("torture %d", number))
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
