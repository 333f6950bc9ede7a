package torture

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/google/uuid"
)

// An intrusion is a request for what another tenant has. The same request for
// what nobody has must get the same answer, ids aside.
type intrusion struct {
	what   string
	method string
	path   string         // with CONVERSATION, MESSAGE and OWN in it
	body   map[string]any // the same in values
}

// intrusions are one of each route that takes an id.
var intrusions = []intrusion{
	{"get", http.MethodGet, "/v1/conversations/CONVERSATION", nil},
	{"rename", http.MethodPatch, "/v1/conversations/CONVERSATION", map[string]any{"title": "stolen"}},
	{"move head", http.MethodPatch, "/v1/conversations/CONVERSATION", map[string]any{"head_id": "MESSAGE"}},
	{"delete", http.MethodDelete, "/v1/conversations/CONVERSATION", nil},
	{"list its replies", http.MethodGet, "/v1/conversations/CONVERSATION/replies", nil},
	{"watch", http.MethodGet, "/v1/conversations/CONVERSATION/events?follow=false", nil},
	{"share", http.MethodPost, "/v1/conversations/CONVERSATION/branches/MESSAGE/shares", map[string]any{}},
	{"list its links", http.MethodGet, "/v1/conversations/CONVERSATION/shares", nil},
	{"pin a message", http.MethodPatch, "/v1/conversations/CONVERSATION/messages/MESSAGE", map[string]any{"pinned": true}},
	{"revoke a link", http.MethodDelete, "/v1/conversations/CONVERSATION/shares/MESSAGE", nil},
	{"append", http.MethodPost, "/v1/conversations/CONVERSATION/messages", map[string]any{"parent_id": "MESSAGE", "role": "user", "content": "stolen"}},
	{"append a root", http.MethodPost, "/v1/conversations/CONVERSATION/messages", map[string]any{"parent_id": nil, "role": "user", "content": "stolen"}},
	{"append a chain", http.MethodPost, "/v1/conversations/CONVERSATION/messages", map[string]any{"parent_id": "MESSAGE", "messages": []any{map[string]any{"role": "user", "content": "stolen"}}}},
	{"message", http.MethodGet, "/v1/conversations/CONVERSATION/messages/MESSAGE", nil},
	{"prune", http.MethodDelete, "/v1/conversations/CONVERSATION/messages/MESSAGE", nil},
	{"children", http.MethodGet, "/v1/conversations/CONVERSATION/messages/MESSAGE/children", nil},
	{"roots", http.MethodGet, "/v1/conversations/CONVERSATION/roots", nil},
	{"newest leaf", http.MethodGet, "/v1/conversations/CONVERSATION/messages/MESSAGE/newest-leaf", nil},
	{"fork", http.MethodPost, "/v1/conversations/CONVERSATION/messages/MESSAGE/fork", map[string]any{}},
	{"tree", http.MethodGet, "/v1/conversations/CONVERSATION/tree", nil},
	{"branches", http.MethodGet, "/v1/conversations/CONVERSATION/branches", nil},
	{"transcript", http.MethodGet, "/v1/conversations/CONVERSATION/branches/MESSAGE/transcript", nil},
	{"active transcript", http.MethodGet, "/v1/conversations/CONVERSATION/branches/active/transcript", nil},
	{"context", http.MethodGet, "/v1/conversations/CONVERSATION/branches/MESSAGE/context", nil},
	{"explain", http.MethodGet, "/v1/conversations/CONVERSATION/branches/MESSAGE/explain", nil},
	{"recall", http.MethodGet, "/v1/conversations/CONVERSATION/branches/MESSAGE/recall?query=MARK", nil},
	{"compact", http.MethodPost, "/v1/conversations/CONVERSATION/branches/MESSAGE/compactions", map[string]any{}},
	{"compactions", http.MethodGet, "/v1/conversations/CONVERSATION/compactions", nil},
	{"usage", http.MethodGet, "/v1/conversations/CONVERSATION/usage", nil},
	{"summary", http.MethodGet, "/v1/conversations/CONVERSATION/summaries/SUMMARY", nil},
	{"make a summary again", http.MethodPost, "/v1/conversations/CONVERSATION/summaries/SUMMARY/remake", map[string]any{}},
	{"undo", http.MethodDelete, "/v1/conversations/CONVERSATION/messages/SUMMARY", nil},
	{"reply", http.MethodPost, "/v1/conversations/CONVERSATION/branches/MESSAGE/replies", map[string]any{}},
	{"events of a reply", http.MethodGet, "/v1/conversations/CONVERSATION/replies/MESSAGE/events", nil},
	{"stop a reply", http.MethodDelete, "/v1/conversations/CONVERSATION/replies/MESSAGE", nil},
	{"export", http.MethodGet, "/v1/conversations/CONVERSATION/export", nil},
	{"search in", http.MethodGet, "/v1/search?query=MARK&conversation_id=CONVERSATION", nil},
	{"search", http.MethodGet, "/v1/search?query=MARK", nil},
	{"list", http.MethodGet, "/v1/conversations?query=MARK", nil},
	// Of one's own conversation, with a message of another tenant's.
	{"append to own", http.MethodPost, "/v1/conversations/OWN/messages", map[string]any{"parent_id": "MESSAGE", "role": "user", "content": "stolen"}},
	{"move own head", http.MethodPatch, "/v1/conversations/OWN", map[string]any{"head_id": "MESSAGE"}},
	{"message in own", http.MethodGet, "/v1/conversations/OWN/messages/MESSAGE", nil},
	{"prune in own", http.MethodDelete, "/v1/conversations/OWN/messages/MESSAGE", nil},
	{"fork in own", http.MethodPost, "/v1/conversations/OWN/messages/MESSAGE/fork", map[string]any{}},
	{"transcript in own", http.MethodGet, "/v1/conversations/OWN/branches/MESSAGE/transcript", nil},
	{"context in own", http.MethodGet, "/v1/conversations/OWN/branches/MESSAGE/context", nil},
	{"recall in own", http.MethodGet, "/v1/conversations/OWN/branches/MESSAGE/recall?query=MARK", nil},
	{"summary in own", http.MethodGet, "/v1/conversations/OWN/summaries/SUMMARY", nil},
	{"make a summary again in own", http.MethodPost, "/v1/conversations/OWN/summaries/SUMMARY/remake", map[string]any{}},
	{"reply in own", http.MethodPost, "/v1/conversations/OWN/branches/MESSAGE/replies", map[string]any{}},
}

// intrusionTurn is whose turn it is, so that each of the intrusions is tried as
// often as the others.
type intrusionTurn struct {
	mu   sync.Mutex
	next int
}

func (t *intrusionTurn) take() intrusion {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	return intrusions[t.next%len(intrusions)]
}

// names are what stands for the words in an intrusion.
type names map[string]string

func (n names) in(text string) string {
	for word, name := range n {
		text = strings.ReplaceAll(text, word, name)
	}
	return text
}

// out puts the words back for what they stand for.
func (n names) out(text string) string {
	for word, name := range n {
		text = strings.ReplaceAll(text, name, word)
	}
	return text
}

func (n names) body(body map[string]any) any {
	if body == nil {
		return nil
	}
	filled := map[string]any{}
	for member, value := range body {
		if text, ok := value.(string); ok {
			value = n.in(text)
		}
		filled[member] = value
	}
	return filled
}

// pry asks for what another tenant has, and for what nobody has, and compares
// the answers.
func (w *writer) pry(ctx context.Context, c *conversation, standing []*message) bool {
	own := w.otherTenants(c)
	if own == nil {
		return false
	}
	m := standing[w.rng.IntN(len(standing))]
	c.mu.Lock()
	theirs := names{"CONVERSATION": c.id.String(), "MESSAGE": m.id.String(), "SUMMARY": c.someSummary().String(), "MARK": m.mark.String(), "OWN": own.id.String()}
	c.mu.Unlock()
	nobodys := names{"CONVERSATION": uuid.NewString(), "MESSAGE": uuid.NewString(), "SUMMARY": uuid.NewString(), "MARK": "m0000000", "OWN": own.id.String()}
	what := w.intrusions.take()
	ask := func(n names) (answer, bool) {
		for range 5 {
			a := w.as(own).do(ctx, nil, w.any(), what.method, n.in(what.path), n.body(what.body), nil)
			if a.outcome() != unknown && a.status != http.StatusTooManyRequests {
				return a, true
			}
		}
		return answer{}, false
	}
	a, ok := ask(theirs)
	if !ok {
		return true
	}
	b, ok := ask(nobodys)
	if !ok {
		return true
	}
	w.report.operation("pry", b.outcome(), 1)
	if wrong := compareIntrusion(a, theirs, b, nobodys); wrong != "" {
		w.report.violate("tenant", "%s (%s %s) of %s, asked by %s: %s", what.what, what.method, theirs.in(what.path), c.tenant.name, own.tenant.name, wrong)
	}
	w.report.count(func(r *Report) { r.Checks.Foreign++ })
	return true
}

// compareIntrusion tells how the answer for what another tenant has differs
// from that for what nobody has.
func compareIntrusion(a answer, theirs names, b answer, nobodys names) (wrong string) {
	gotA, gotB := theirs.out(string(a.body)), nobodys.out(string(b.body))
	if a.status != b.status || gotA != gotB {
		return "status " + http.StatusText(a.status) + ", " + clip(gotA) + "; of what nobody has, " + http.StatusText(b.status) + ", " + clip(gotB)
	}
	return ""
}

func clip(text string) string {
	const most = 300
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// otherTenants gives a shared conversation of another tenant than this one's.
func (w *writer) otherTenants(c *conversation) *conversation {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.rng.Perm(len(w.shared)) {
		if w.shared[i].tenant != c.tenant && !w.shared[i].gone() {
			return w.shared[i]
		}
	}
	return nil
}
