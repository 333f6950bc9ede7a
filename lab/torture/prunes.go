package torture

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
)

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
			least, most := c.pruneBounds(m, now) // now that all prunes are known that may have come before
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

// A prunedAnswer is what a prune says.
type prunedAnswer struct {
	Messages  int       `json:"messages"`
	Summaries int       `json:"summaries"`
	HeadID    uuid.UUID `json:"head_id"`
}

// checkPruned checks the answer of a prune, which deletes so many messages at
// least and at most. The caller holds mu.
func checkPruned(c *conversation, top *message, got prunedAnswer, least, most int) (found []finding) {
	wrong := func(format string, args ...any) {
		found = append(found, finding{"prune", fmt.Sprintf("conversation %s: the prune of %s ", c.id, top.id) + fmt.Sprintf(format, args...)})
	}
	if got.Messages < least || got.Messages > most {
		wrong("says that %d messages were deleted, and %d to %d stood there", got.Messages, least, most)
	}
	if m := c.messages[got.HeadID]; m != nil {
		for at := m; at != nil; at = c.messages[at.parent] {
			if at == top {
				wrong("leaves the active head at %s, which it deleted", got.HeadID)
			}
		}
	}
	return found
}
