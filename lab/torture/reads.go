package torture

import (
	"context"
	"net/http"
	"time"
)

func (w *writer) readContext(ctx context.Context, c *conversation, standing []*message) bool {
	w.compareContext(ctx, c, w.tip(c, standing))
	return true
}

// compareContext reads the context of a head and compares it with the branch.
func (w *run) compareContext(ctx context.Context, c *conversation, m *message) {
	c.mu.Lock()
	path := known(c.path(m.id))
	c.mu.Unlock()
	var got contextAnswer
	a := w.as(c).do(ctx, nil, w.any(), http.MethodGet, w.branchPath(c, m, "context"), nil, &got)
	w.report.operation("read context", a.outcome(), 1)
	switch {
	case a.code == "message_not_found":
		w.gone(c, m, "context")
	case a.outcome() == acknowledged:
		found, seen := checkContext(path, got)
		w.report.findings(found)
		w.report.count(func(r *Report) { r.Checks.addContext(seen) })
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
	var all []shown
	for cursor := ""; ; {
		var page struct {
			Data       []shown
			NextCursor *string `json:"next_cursor"`
		}
		query := "transcript?limit=25"
		if cursor != "" {
			query += "&cursor=" + cursor
		}
		a := w.as(c).do(ctx, nil, w.any(), http.MethodGet, w.branchPath(c, m, query), nil, &page)
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
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, got := range all {
		if got.ID != path[i].id {
			w.report.violate("cover", "the transcript of %s has as number %d %s, and the branch %s", m.id, i, got.ID, path[i].id)
			return
		}
		w.report.findings(checkShown(c, path[i], got, "a transcript"))
	}
}

// readMessage reads a message by its id.
func (w *writer) readMessage(ctx context.Context, c *conversation, standing []*message) bool {
	m := standing[w.rng.IntN(len(standing))]
	var got shown
	a := w.as(c).do(ctx, nil, w.any(), http.MethodGet, w.path(c)+"/messages/"+m.id.String(), nil, &got)
	w.report.operation("read message", a.outcome(), 1)
	switch {
	case a.code == "message_not_found":
		w.gone(c, m, "read message")
	case a.outcome() == acknowledged:
		c.mu.Lock()
		w.report.findings(checkShown(c, m, got, "an answer of its own"))
		c.mu.Unlock()
	}
	return true
}

// readPruned looks for a message that was pruned.
func (w *writer) readPruned(ctx context.Context, c *conversation, _ []*message) bool {
	m := w.somePruned(c)
	if m == nil {
		return false
	}
	a := w.as(c).do(ctx, nil, w.any(), http.MethodGet, w.path(c)+"/messages/"+m.id.String(), nil, nil)
	w.report.operation("read pruned", a.outcome(), 1)
	if a.outcome() == acknowledged {
		w.report.violate("came back", "conversation %s: message %s is there again", c.id, m.id)
	}
	return true
}

// somePruned picks a message that was pruned, nil where none was.
func (w *writer) somePruned(c *conversation) *message {
	c.mu.Lock()
	defer c.mu.Unlock()
	var pruned []*message
	now := time.Now()
	for _, m := range c.order {
		if m.state == acknowledged && c.prunedBefore(m, now) {
			pruned = append(pruned, m)
		}
	}
	if len(pruned) == 0 {
		return nil
	}
	return pruned[w.rng.IntN(len(pruned))]
}
