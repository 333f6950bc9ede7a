package torture

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/google/uuid"
)

// intrusions are requests for what another tenant has, one of each route that
// takes an id: C stands for a conversation, <M>, <S> and <W> for a message, a
// summary and a word of it, and OWN for a conversation of the tenant that asks.
// The same request for what nobody has must get the same answer, ids aside.
var intrusions = readIntrusions(`
GET C|C/replies|C/events?follow=false|C/shares|C/roots|C/tree|C/branches|C/compactions|C/usage|C/export|C/summaries/<S>|C/replies/<M>/events
GET C/messages/<M>|C/messages/<M>/children|C/messages/<M>/newest-leaf|C/branches/active/transcript
GET C/branches/<M>/transcript|C/branches/<M>/context|C/branches/<M>/explain|C/branches/<M>/recall?query=<W>
GET OWN/messages/<M>|OWN/branches/<M>/transcript|OWN/branches/<M>/context|OWN/branches/<M>/recall?query=<W>|OWN/summaries/<S>
GET /v1/search?query=<W>&conversation_id=<C>|/v1/search?query=<W>|/v1/conversations?query=<W>
DELETE C|C/messages/<M>|C/messages/<S>|C/shares/<M>|C/replies/<M>|OWN/messages/<M>
PATCH C {"title": "stolen"}
PATCH C|OWN {"head_id": "<M>"}
PATCH C/messages/<M> {"pinned": true}
POST C/messages|OWN/messages {"parent_id": "<M>", "role": "user", "content": "stolen"}
POST C/messages {"parent_id": null, "role": "user", "content": "stolen"}
POST C/summaries/<S>/remake|C/messages/<M>/fork|C/branches/<M>/shares|C/branches/<M>/compactions|C/branches/<M>/replies {}
POST OWN/messages/<M>/fork|OWN/branches/<M>/replies {}
`)

type intrusion struct{ method, path, body string }

func readIntrusions(lines string) (all []intrusion) {
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		method, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		paths, body, _ := strings.Cut(rest, " ")
		for path := range strings.SplitSeq(paths, "|") {
			all = append(all, intrusion{method, path, body})
		}
	}
	return all
}

// pry asks for what another tenant has, and for what nobody has, and compares
// the answers.
func (w *writer) pry(ctx context.Context, c *conversation, standing []*message) bool {
	w.mu.Lock()
	own := w.shared[w.rng.IntN(len(w.shared))]
	w.mu.Unlock()
	if own.tenant == c.tenant || !own.stands() {
		return false
	}
	m, summary := w.some(standing), uuid.New()
	c.mu.Lock()
	if c.summary != uuid.Nil {
		summary = c.summary
	}
	c.mu.Unlock()
	what := intrusions[w.rng.IntN(len(intrusions))]
	ask := func(conversation, message, summary, word string) (a answer, text string) {
		names := strings.NewReplacer("<C>", conversation, "<M>", message, "<S>", summary, "<W>", word)
		q := request{tenant: own.tenant, method: what.method, path: names.Replace(what.path)}
		if after, ok := strings.CutPrefix(q.path, "OWN"); ok {
			q.path = "/v1/conversations/" + own.id.String() + after
		} else if after, ok := strings.CutPrefix(q.path, "C"); ok {
			q.path = "/v1/conversations/" + conversation + after
		}
		if what.body != "" {
			q.body = json.RawMessage(names.Replace(what.body))
		}
		a = w.do(ctx, q)
		return a, strings.NewReplacer(conversation, "<C>", message, "<M>", summary, "<S>", word, "<W>").Replace(string(a.body))
	}
	a, theirs := ask(c.id.String(), m.id.String(), summary.String(), m.mark.String())
	b, nobodys := ask(uuid.NewString(), uuid.NewString(), uuid.NewString(), "m0000000")
	if a.again() || b.again() {
		return true
	}
	if a.status != b.status || theirs != nobodys {
		c.violate("tenant", "%v: %s asks for what %s has and gets %d %s; for what nobody has, %d %s", what, own.tenant.name, c.tenant.name, a.status, clip(theirs, 300), b.status, clip(nobodys, 300))
	}
	w.report.checked("requests for what another tenant has", 1)
	return true
}
