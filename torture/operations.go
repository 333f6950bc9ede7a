package torture

import (
	"context"
	"net/http"
	"slices"
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
		return w.client.do(ctx, w.rng, server, http.MethodPatch, w.path(c), map[string]any{"head_id": m.id}, &got)
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
	c.mu.Lock()
	if m.depth < 3 || !m.clean() {
		c.mu.Unlock()
		return false
	}
	if m.pruneSentAt.IsZero() {
		m.pruneSentAt = time.Now()
	}
	m.prunes++
	c.mu.Unlock()
	a, attempts := w.persist(ctx, w.rng, func(server int) answer {
		return w.client.do(ctx, w.rng, server, http.MethodDelete, w.path(c)+"/messages/"+m.id.String(), nil, nil)
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
	}
	w.report.operation("prune", a.outcome(), attempts)
	return true
}

// forkBranch makes a conversation of a branch. Now and then writers go on with
// it in place of another one.
func (w *writer) forkBranch(ctx context.Context, c *conversation, standing []*message) bool {
	m := standing[w.rng.IntN(len(standing))]
	fork := newConversation(uuid.Must(uuid.NewV7()))
	fork.shared = true
	c.mu.Lock()
	fork.fork = &forkOrder{path: slices.Clone(c.path(m.id))}
	c.mu.Unlock()
	w.register(fork)
	a, attempts := w.persist(ctx, w.rng, func(server int) answer {
		return w.client.do(ctx, w.rng, server, http.MethodPost, w.path(c)+"/messages/"+m.id.String()+"/fork", map[string]any{"id": fork.id}, nil)
	})
	fork.mu.Lock()
	switch fork.state = a.outcome(); {
	case fork.state == acknowledged:
		fork.fill(fork.fork)
	case fork.state == refused && attempts > 1:
		fork.state = unknown
	}
	state := fork.state
	fork.mu.Unlock()
	if a.code == "message_not_found" {
		w.gone(c, m, "fork")
	}
	w.report.operation("fork", a.outcome(), attempts)
	if state == acknowledged && w.rng.IntN(4) == 0 {
		w.mu.Lock()
		w.shared[w.rng.IntN(len(w.shared))] = fork
		w.mu.Unlock()
	}
	return true
}

func (w *writer) compact(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.tip(c, standing)
	if m.depth < 8 {
		return false
	}
	body := map[string]any{"keep_recent_messages": 1 + w.rng.IntN(6)}
	a := w.client.do(ctx, w.rng, w.rng.IntN(len(w.client.programs)), http.MethodPost, w.branchPath(c, m, "compactions"), body, nil)
	if a.code == "message_not_found" {
		w.gone(c, m, "compaction")
	}
	w.report.operation("compact", a.outcome(), 1)
	return true
}

func (w *writer) readContext(ctx context.Context, c *conversation, standing []*message) bool {
	w.compareContext(ctx, c, w.tip(c, standing))
	return true
}

// compareContext reads the context of a head and compares it with the branch.
func (w *run) compareContext(ctx context.Context, c *conversation, m *message) {
	c.mu.Lock()
	path := c.path(m.id)
	c.mu.Unlock()
	var got contextAnswer
	a := w.client.do(ctx, nil, w.any(), http.MethodGet, w.branchPath(c, m, "context"), nil, &got)
	w.report.operation("read context", a.outcome(), 1)
	switch {
	case a.code == "message_not_found":
		w.gone(c, m, "context")
	case a.outcome() == acknowledged:
		found, summarized := checkContext(path, got)
		w.report.findings(found)
		w.report.count(func(r *Report) {
			r.Checks.Contexts++
			if summarized {
				r.Checks.Summarized++
			}
		})
	}
}

func (w *writer) readTranscript(ctx context.Context, c *conversation, standing []*message) bool {
	w.compareTranscript(ctx, c, w.tip(c, standing))
	return true
}

// compareTranscript reads a branch page by page, and compares it with the
// ledger's.
func (w *run) compareTranscript(ctx context.Context, c *conversation, m *message) {
	c.mu.Lock()
	path := c.path(m.id)
	c.mu.Unlock()
	type spoken struct {
		ID      uuid.UUID `json:"id"`
		Parent  uuid.UUID `json:"parent_id"`
		Role    string    `json:"role"`
		Content string    `json:"content"`
	}
	var all []spoken
	for cursor := ""; ; {
		var page struct {
			Data       []spoken
			NextCursor *string `json:"next_cursor"`
		}
		query := "transcript?limit=25"
		if cursor != "" {
			query += "&cursor=" + cursor
		}
		a := w.client.do(ctx, nil, w.any(), http.MethodGet, w.branchPath(c, m, query), nil, &page)
		w.report.operation("read transcript", a.outcome(), 1)
		if a.outcome() != acknowledged {
			if a.code == "message_not_found" {
				w.gone(c, m, "transcript")
			}
			return
		}
		all = append(page.Data, all...)
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	w.report.count(func(r *Report) { r.Checks.Transcripts++ })
	if len(all) != len(path) {
		w.report.violate("cover", "the transcript of %s has %d messages, and the branch %d", m.id, len(all), len(path))
		return
	}
	for i, got := range all {
		want := path[i]
		if got.ID != want.id || got.Parent != want.parent || got.Role != want.role || want.content != "" && got.Content != want.content {
			w.report.violate("cover", "the transcript of %s has as number %d %+v, and the branch %s %s below %s: %q", m.id, i, got, want.role, want.id, want.parent, want.content)
			return
		}
	}
}

// readPruned looks for a message that was pruned.
func (w *writer) readPruned(ctx context.Context, c *conversation, _ []*message) bool {
	c.mu.Lock()
	var pruned []*message
	now := time.Now()
	for _, m := range c.order {
		if m.state == acknowledged && c.prunedBefore(m, now) {
			pruned = append(pruned, m)
		}
	}
	c.mu.Unlock()
	if len(pruned) == 0 {
		return false
	}
	m := pruned[w.rng.IntN(len(pruned))]
	a := w.client.do(ctx, nil, w.any(), http.MethodGet, w.path(c)+"/messages/"+m.id.String(), nil, nil)
	w.report.operation("read pruned", a.outcome(), 1)
	if a.outcome() == acknowledged {
		w.report.violate("came back", "conversation %s: message %s is there again", c.id, m.id)
	}
	return true
}

// create makes a shared conversation, and returns it once a server said that
// it is there.
func (w *run) create(ctx context.Context, shared bool) *conversation {
	c := newConversation(uuid.Must(uuid.NewV7()))
	c.shared = shared
	w.register(c)
	rng := w.rng("create", int(w.created.Add(1)))
	a, attempts := w.persist(ctx, rng, func(server int) answer {
		return w.client.do(ctx, nil, server, http.MethodPost, "/v1/conversations", map[string]any{"id": c.id, "title": "torture"}, nil)
	})
	c.mu.Lock()
	c.state = a.outcome()
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
		return w.client.do(ctx, nil, server, http.MethodDelete, w.path(c), nil, nil)
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
