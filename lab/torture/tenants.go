package torture

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// intrusions are requests for what another tenant has, one of each route that
// takes an id: C stands for a conversation, M, S and W for a message, a summary
// and a word of it, and OWN for a conversation of the tenant that asks. The same
// request for what nobody has must get the same answer, ids aside.
var intrusions = strings.Split(strings.TrimSpace(`
GET C
PATCH C {"title": "stolen"}
PATCH C {"head_id": "<M>"}
DELETE C
GET C/replies
GET C/events?follow=false
GET C/shares
GET C/roots
GET C/tree
GET C/branches
GET C/compactions
GET C/usage
GET C/export
GET C/summaries/<S>
POST C/summaries/<S>/remake {}
DELETE C/messages/<S>
POST C/branches/<M>/shares {}
DELETE C/shares/<M>
PATCH C/messages/<M> {"pinned": true}
POST C/messages {"parent_id": "<M>", "role": "user", "content": "stolen"}
POST C/messages {"parent_id": null, "role": "user", "content": "stolen"}
GET C/messages/<M>
DELETE C/messages/<M>
GET C/messages/<M>/children
GET C/messages/<M>/newest-leaf
POST C/messages/<M>/fork {}
GET C/branches/<M>/transcript
GET C/branches/active/transcript
GET C/branches/<M>/context
GET C/branches/<M>/explain
GET C/branches/<M>/recall?query=<W>
POST C/branches/<M>/compactions {}
POST C/branches/<M>/replies {}
GET C/replies/<M>/events
DELETE C/replies/<M>
GET /v1/search?query=<W>&conversation_id=<C>
GET /v1/search?query=<W>
GET /v1/conversations?query=<W>
POST OWN/messages {"parent_id": "<M>", "role": "user", "content": "stolen"}
PATCH OWN {"head_id": "<M>"}
GET OWN/messages/<M>
DELETE OWN/messages/<M>
POST OWN/messages/<M>/fork {}
GET OWN/branches/<M>/transcript
GET OWN/branches/<M>/context
GET OWN/branches/<M>/recall?query=<W>
GET OWN/summaries/<S>
POST OWN/branches/<M>/replies {}
`), "\n")

// pry asks for what another tenant has, and for what nobody has, and compares
// the answers.
func (w *writer) pry(ctx context.Context, c *conversation, standing []*message) bool {
	var own *conversation
	w.mu.Lock()
	for _, i := range w.rng.Perm(len(w.shared)) {
		if w.shared[i].tenant != c.tenant && w.shared[i].stands() {
			own = w.shared[i]
		}
	}
	w.mu.Unlock()
	if own == nil {
		return false
	}
	m, summary := w.some(standing), uuid.New()
	c.mu.Lock()
	if c.summary != uuid.Nil {
		summary = c.summary
	}
	c.mu.Unlock()
	what := intrusions[int(w.prying.Add(1))%len(intrusions)] // each as often as the others
	theirs := []string{"<C>", c.id.String(), "<M>", m.id.String(), "<S>", summary.String(), "<W>", m.mark.String()}
	nobodys := []string{"<C>", uuid.NewString(), "<M>", uuid.NewString(), "<S>", uuid.NewString(), "<W>", "m0000000"}
	ask := func(names []string) (a answer, text string) {
		method, rest, _ := strings.Cut(strings.NewReplacer(names...).Replace(what), " ")
		path, body, _ := strings.Cut(rest, " ")
		q := request{tenant: own.tenant, server: anyServer, method: method, path: path}
		if after, ok := strings.CutPrefix(path, "OWN"); ok {
			q.path = own.path() + after
		} else if after, ok := strings.CutPrefix(path, "C"); ok {
			q.path = "/v1/conversations/" + names[1] + after
		}
		if body != "" {
			q.body = json.RawMessage(body)
		}
		for range 5 {
			if a = w.do(ctx, q); a.outcome() != unknown && a.status != http.StatusTooManyRequests {
				break
			}
		}
		var back []string
		for i := 0; i < len(names); i += 2 {
			back = append(back, names[i+1], names[i])
		}
		return a, strings.NewReplacer(back...).Replace(string(a.body))
	}
	a, gotA := ask(theirs)
	b, gotB := ask(nobodys)
	if a.outcome() == unknown || b.outcome() == unknown || a.status == http.StatusTooManyRequests || b.status == http.StatusTooManyRequests {
		return true
	}
	if a.status != b.status || gotA != gotB {
		w.report.violate("tenant", "%s: %s asks for %v of %s and gets %d %s; of what nobody has, %d %s", what, own.tenant.name, theirs, c.tenant.name, a.status, clip(gotA, 300), b.status, clip(gotB, 300))
	}
	w.report.operation("pry", b.outcome(), 1)
	w.report.checked("requests for what another tenant has", 1)
	return true
}
