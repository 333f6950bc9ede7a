package torture

import (
	"context"
	"net/url"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/summarize"
)

// read compares the context and the transcript of a branch with the ledger.
func (w *writer) read(ctx context.Context, c *conversation, standing []*message) bool {
	head := w.tip(standing)
	path := c.known(head)
	var got summarize.Context
	if a := w.get(ctx, c.on(head, "", "/branches/{}/context", nil), &got); a.outcome() == acknowledged {
		contextCheck{path, got, w.report}.check()
	}
	var page struct{ Data []shown }
	if a := w.get(ctx, c.on(head, "", "/branches/{}/transcript?limit=1000", nil), &page); a.outcome() != acknowledged {
		return true
	}
	w.report.checked("transcripts", 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	path = c.branch(head.id)
	if len(page.Data) != len(path) {
		c.violate("cover", "the transcript of %s has %d messages, and the branch %d", head.id, len(page.Data), len(path))
		return true
	}
	for i, got := range page.Data {
		c.checkShown(path[i], got, "the transcript of "+head.id.String())
	}
	return true
}

// hits are what a search finds, or recall.
type hits struct {
	Data       []struct{ Message shown }
	Incomplete bool // some messages aren't indexed yet
}

// search looks for a message by its mark, in its conversation or in all of the
// tenant's. It finds the message, and only messages of the tenant with this mark.
func (w *writer) search(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.some(append(standing, c.standing(true)...))
	query, within := url.Values{"query": {m.mark.String()}, "limit": {"200"}}, w.rng.IntN(2) == 0
	if within {
		query.Set("conversation_id", c.id.String())
	}
	var page hits
	a := w.get(ctx, request{tenant: c.tenant, path: "/v1/search?" + query.Encode()}, &page)
	if a.outcome() != acknowledged || m.mark == noMark {
		return true
	}
	there := false
	for _, h := range page.Data {
		there = there || h.Message.ID == m.id
		of := w.find(h.Message.ConversationID)
		if of == nil || of.tenant != c.tenant || within && of != c || markOf(h.Message.text) != m.mark {
			c.violate("search", "a search by %s for %v within %v finds %s in conversation %s", c.tenant.name, m.mark, within, h.Message.ID, h.Message.ConversationID)
			continue
		}
		of.mu.Lock()
		if is := of.messages[h.Message.ID]; is != nil && of.prunedBefore(is, a.sentAt) {
			of.violate("came back", "a search finds %s, which was pruned", is.id)
		}
		of.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !there && m.ackedAt.Before(a.sentAt) && !c.mayBePruned(m) && len(page.Data) < 200 {
		c.violate("search", "a search for %v doesn't find %s; incomplete: %v", m.mark, m.id, page.Incomplete)
	}
	w.report.checked("searches", 1)
	return true
}

// recall asks a branch for a text. Only messages of the branch come.
func (w *writer) recall(ctx context.Context, c *conversation, standing []*message) bool {
	head, m := w.tip(standing), w.some(standing)
	if m.content == "" { // an answer that no client has seen
		return false
	}
	path := c.known(head)
	query := url.Values{"query": {m.content}, "scope": {[]string{"folded", "branch"}[w.rng.IntN(2)]}}
	var got hits
	w.get(ctx, c.on(head, "", "/branches/{}/recall?"+query.Encode(), nil), &got)
	for _, h := range got.Data {
		if !slices.ContainsFunc(path, func(on *message) bool { return on.id == h.Message.ID }) {
			c.violate("leak", "recall on the branch of %s finds %s, which isn't on it", head.id, h.Message.ID)
		}
		w.report.checked("recalls", 1)
	}
	return true
}

// find gives a conversation by its id, nil where there is none.
func (r *run) find(id uuid.UUID) *conversation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[id]
}
