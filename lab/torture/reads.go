package torture

import (
	"context"
	"net/url"
	"slices"

	"github.com/google/uuid"
)

// read reads the context and the transcript of a branch.
func (w *writer) read(ctx context.Context, c *conversation, standing []*message) bool {
	head := w.tip(c, standing)
	w.compareContext(ctx, c, head)
	w.compareTranscript(ctx, c, head)
	return true
}

// compareContext reads the context of a head and compares it with the branch.
func (r *run) compareContext(ctx context.Context, c *conversation, head *message) {
	path := c.known(head)
	var got contextAnswer
	a := r.get(ctx, c.tenant, c.on(head, "context"), &got)
	r.report.operation("read context", a.outcome(), 1)
	if a.code == "message_not_found" {
		r.gone(c, head, "context")
	}
	if a.outcome() == acknowledged {
		found, seen := checkContext(path, got)
		r.report.findings(found)
		r.report.checkedAll(seen)
	}
}

// compareTranscript reads a branch page by page, and compares it with the
// ledger's.
func (r *run) compareTranscript(ctx context.Context, c *conversation, head *message) {
	all, a := readPages[shown](ctx, r, c.tenant, c.on(head, "transcript?limit=25"))
	r.report.operation("read transcript", a.outcome(), 1)
	if a.code == "message_not_found" {
		r.gone(c, head, "transcript")
	}
	if a.outcome() != acknowledged {
		return
	}
	slices.Reverse(all) // the newest page comes first
	messages := slices.Concat(all...)
	r.report.checked("transcripts", 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	path := c.branch(head.id)
	if len(messages) != len(path) {
		r.report.violate("cover", "conversation %s: the transcript of %s has %d messages, and the branch %d", c.id, head.id, len(messages), len(path))
		return
	}
	for i, got := range messages {
		r.report.findings(checkShown(c, path[i], got, "the transcript of "+head.id.String()))
	}
}

// A hit is one of a search, or of recall.
type hit struct {
	Message shownAt `json:"message"`
}

type shownAt struct {
	shown
	ConversationID uuid.UUID `json:"conversation_id"`
}

// search looks for a message by its mark, in its conversation or in all of the
// tenant's. It finds the message, and nothing but what says this mark in
// conversations of the tenant.
func (w *writer) search(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.some(append(standing, c.standing(true)...))
	query, within := url.Values{"query": {m.mark.String()}, "limit": {"200"}}, w.rng.IntN(2) == 0
	if within {
		query.Set("conversation_id", c.id.String())
	}
	var page struct{ Data []hit }
	a := w.get(ctx, c.tenant, "/v1/search?"+query.Encode(), &page)
	w.report.operation("search", a.outcome(), 1)
	if a.outcome() != acknowledged || m.mark == noMark {
		return true
	}
	there := false
	for _, h := range page.Data {
		there = there || h.Message.ID == m.id
		of := w.find(h.Message.ConversationID)
		if of == nil || of.tenant != c.tenant || within && of != c || markOf(h.Message.text()) != m.mark {
			w.report.violate("search", "a search by %s for %v within %v finds %s in conversation %s", c.tenant.name, m.mark, within, h.Message.ID, h.Message.ConversationID)
			continue
		}
		of.mu.Lock()
		if is := of.messages[h.Message.ID]; is != nil && of.prunedBefore(is, a.sentAt) {
			w.report.violate("came back", "a search finds %s in conversation %s, which was pruned", is.id, of.id)
		}
		of.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !there && m.ackedAt.Before(a.sentAt) && !c.mayBePruned(m) && len(page.Data) < 200 {
		w.report.violate("search", "conversation %s: a search for %v doesn't find %s", c.id, m.mark, m.id)
	}
	w.report.checked("searches", 1)
	return true
}

// recall asks a branch for a text. What it finds stands on the branch.
func (w *writer) recall(ctx context.Context, c *conversation, standing []*message) bool {
	head, m := w.tip(c, standing), w.some(standing)
	if m.content == "" { // an answer that no client has seen
		return false
	}
	path := c.known(head)
	scope := []string{"folded", "branch"}[w.rng.IntN(2)]
	var got struct{ Data []hit }
	a := w.get(ctx, c.tenant, c.on(head, "recall?"+url.Values{"query": {m.content}, "scope": {scope}}.Encode()), &got)
	w.report.operation("recall", a.outcome(), 1)
	if a.outcome() != acknowledged {
		return true
	}
	for _, h := range got.Data {
		if !slices.ContainsFunc(path, func(on *message) bool { return on.id == h.Message.ID }) {
			w.report.violate("leak", "conversation %s: recall on the branch of %s finds %s, which isn't on it", c.id, head.id, h.Message.ID)
		}
		w.report.checked("recalls", 1)
	}
	return true
}

// find gives a conversation by its id, nil where there is none.
func (r *run) find(id uuid.UUID) *conversation {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.all, func(c *conversation) bool { return c.id == id }); i >= 0 {
		return r.all[i]
	}
	return nil
}

// checkList compares a tenant's list of conversations with those that were made
// for it.
func (r *run) checkList(ctx context.Context, t *tenant) {
	all, a := readPages[struct {
		ID    uuid.UUID
		Title string
	}](ctx, r, t, "/v1/conversations?limit=200")
	if a.outcome() != acknowledged {
		r.report.violate("lost", "the conversations of %s can't be listed: %d %s", t.name, a.status, a.code)
		return
	}
	listed := map[uuid.UUID]bool{}
	for _, got := range slices.Concat(all...) {
		if c := r.find(got.ID); c != nil && c.tenant != t || c == nil && !r.isChat(t, got.Title) || listed[got.ID] {
			r.report.violate("tenant", "conversation %s is listed for %s, which didn't make it, or twice", got.ID, t.name)
		}
		listed[got.ID] = true
	}
	for _, c := range r.all {
		if c.tenant == t && c.state == acknowledged && c.deleted == refused && !listed[c.id] {
			r.report.violate("lost", "conversation %s was acknowledged, and is not listed", c.id)
		}
	}
}

// readPages reads a list page by page.
func readPages[T any](ctx context.Context, r *run, t *tenant, path string) (all [][]T, a answer) {
	for cursor := ""; ; {
		var page struct {
			Data       []T
			NextCursor *string `json:"next_cursor"`
		}
		a = r.get(ctx, t, path+cursor, &page)
		if all = append(all, page.Data); a.outcome() != acknowledged || page.NextCursor == nil {
			return all, a
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
}
