package torture

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"
)

// share makes a link of a branch, reads it without a key, and mostly revokes it.
func (w *writer) share(ctx context.Context, c *conversation, standing []*message) bool {
	m := standing[w.rng.IntN(len(standing))]
	var link struct {
		ID    uuid.UUID
		Token string
	}
	a := w.as(c).do(ctx, w.rng, w.any(), http.MethodPost, w.branchPath(c, m, "shares"), map[string]any{}, &link)
	w.report.operation("share", a.outcome(), 1)
	if a.code == "head_not_found" || a.code == "message_not_found" {
		w.gone(c, m, "share")
	}
	if a.outcome() != acknowledged {
		return true
	}
	w.readShare(ctx, c, m, link.Token)
	if w.rng.IntN(4) == 0 {
		return true
	}
	revoked, attempts := w.persist(ctx, w.rng, func(server int) answer {
		return w.as(c).do(ctx, w.rng, server, http.MethodDelete, w.path(c)+"/shares/"+link.ID.String(), nil, nil)
	})
	w.report.operation("revoke a link", revoked.outcome(), attempts)
	if revoked.outcome() != acknowledged {
		return true
	}
	for server := range w.client.programs {
		b := w.client.with("").do(ctx, nil, server, http.MethodGet, "/v1/shared/"+link.Token, nil, nil)
		if b.outcome() == acknowledged {
			w.report.violate("share", "conversation %s: server %d opens the link %s, which was revoked", c.id, server, link.ID)
		}
		if b.status == http.StatusNotFound {
			w.report.count(func(r *Report) { r.Checks.Revoked++ })
		}
	}
	return true
}

// readShare reads a link: it shows the whole branch, and nothing beside it.
func (w *writer) readShare(ctx context.Context, c *conversation, m *message, token string) {
	a := w.client.with("").do(ctx, nil, w.any(), http.MethodGet, "/v1/shared/"+token+"?limit=200", nil, nil)
	w.report.operation("read a link", a.outcome(), 1)
	c.mu.Lock()
	pruned, whole := c.mayBePruned(m) || c.deleted != refused, true
	var path, said []mark
	for _, on := range c.path(m.id) {
		switch path = append(path, on.mark); {
		case on.mark == noMark:
			whole = false // an answer that nobody has seen yet
		case on.role == "user" || on.role == "assistant": // no others are shown
			said = append(said, on.mark)
		}
	}
	c.mu.Unlock()
	switch {
	case a.status == http.StatusNotFound && !pruned:
		w.report.violate("lost", "conversation %s: the link of the branch %s opens nothing", c.id, m.id)
	case a.outcome() == acknowledged:
		w.report.findings(checkShared(c, path, said, whole, marksIn(string(a.body))))
		w.report.count(func(r *Report) { r.Checks.Shares++ })
	}
}

// checkShared compares the marks in a link's answer with those of its branch, of
// which people and models said some. The branch has no others if the path is whole.
func checkShared(c *conversation, path, said []mark, whole bool, shown []mark) (found []finding) {
	k := &checker{c: c}
	if strangers := notIn(shown, path); whole && len(strangers) > 0 {
		k.wrong("leak", "a link shows %v, which isn't on its branch", strangers)
	}
	for _, want := range said {
		if !slices.Contains(shown, want) {
			k.wrong("lost", "a link lacks %v of its branch", want)
		}
	}
	return k.found
}
