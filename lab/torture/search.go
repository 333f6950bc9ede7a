package torture

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
)

// A hit is one of a search.
type hit struct {
	Message shown     `json:"message"`
	HeadID  uuid.UUID `json:"head_id"`
	Title   string    `json:"title"`
	Snippet string    `json:"snippet"`
}

// maxHits is the page of a search. The copies of a text in forks are fewer.
const maxHits = 200

// search looks for a message by its mark, in its conversation or in all of the
// tenant's. Now and then it looks for one that was pruned.
func (w *writer) search(ctx context.Context, c *conversation, standing []*message) bool {
	m := standing[w.rng.IntN(len(standing))]
	if pruned := w.somePruned(c); pruned != nil && w.rng.IntN(4) == 0 {
		m = pruned
	}
	if m.mark == noMark {
		return false
	}
	within := w.rng.IntN(2) == 0
	w.searchFor(ctx, c, m, within)
	return true
}

func (w *run) searchFor(ctx context.Context, c *conversation, m *message, within bool) {
	query := url.Values{"query": {m.mark.String()}, "limit": {"200"}}
	if within {
		query.Set("conversation_id", c.id.String())
	}
	var page struct{ Data []hit }
	a := w.as(c).do(ctx, nil, w.any(), http.MethodGet, "/v1/search?"+query.Encode(), nil, &page)
	w.report.operation("search", a.outcome(), 1)
	if a.outcome() != acknowledged {
		return
	}
	w.report.findings(w.checkHits(c, m, page.Data, within, a.sentAt))
	w.report.count(func(r *Report) { r.Checks.Searches++ })
}

// checkHits checks what a search for a mark found, which began at a time: the
// message, and nothing but what says this mark in conversations of the tenant.
func (w *run) checkHits(c *conversation, m *message, hits []hit, within bool, sentAt time.Time) (found []finding) {
	k := &checker{c: c}
	there := false
	for _, h := range hits {
		there = there || h.Message.ID == m.id
		of := w.find(h.Message.ConversationID)
		switch {
		case of == nil:
			k.wrong("search", "a search for %v finds %s in %s, which nobody made", m.mark, h.Message.ID, h.Message.ConversationID)
		case of.tenant != c.tenant:
			k.wrong("tenant", "a search of %s for %v finds %s in %s, which is %s's", c.tenant.name, m.mark, h.Message.ID, of.id, of.tenant.name)
		case within && of != c:
			k.wrong("search", "a search in it for %v finds %s in %s", m.mark, h.Message.ID, of.id)
		case markOf(h.Message.text()) != m.mark:
			k.wrong("search", "a search for %v finds %s, which says %q", m.mark, h.Message.ID, h.Message.text())
		default:
			k.found = append(k.found, checkHit(of, h, sentAt)...)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !there && m.state == acknowledged && m.ackedAt.Before(sentAt) && !c.mayBePruned(m) && len(hits) < maxHits {
		k.wrong("search", "a search for %v doesn't find %s", m.mark, m.id)
	}
	return k.found
}

// checkHit compares what a search found with its conversation.
func checkHit(c *conversation, h hit, sentAt time.Time) []finding {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.messages[h.Message.ID]
	switch {
	case m == nil && c.fork == nil && c.state == acknowledged:
		return []finding{{"search", "a search finds " + h.Message.ID.String() + " in conversation " + c.id.String() + ", which nobody sent"}}
	case m == nil:
		return nil // a fork whose messages aren't known yet
	case c.prunedBefore(m, sentAt):
		return []finding{{"came back", "a search finds " + m.id.String() + " in conversation " + c.id.String() + ", which was pruned"}}
	}
	return checkShown(c, m, h.Message, "a search")
}

// find gives a conversation by its id, nil where there is none.
func (r *run) find(id uuid.UUID) *conversation {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.all {
		if c.id == id {
			return c
		}
	}
	return nil
}
