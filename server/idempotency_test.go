package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// creates are the requests that make something, with %s where an id may stand.
var creates = []struct {
	name, path, body, otherBody string
	rows                        int // that it adds
}{
	{"conversation", "/v1/conversations", `{%s"title":"A"}`, `{%s"title":"B"}`, 1},
	{"message", appendPath, `{%s"parent_id":"{{c.thanks}}","role":"user","content":"A"}`, `{%s"parent_id":"{{c.thanks}}","role":"user","content":"B"}`, 1},
	{"root", appendPath, `{%s"parent_id":null,"role":"user","content":"A"}`, `{%s"parent_id":null,"role":"user","content":"A","pinned":true}`, 1},
	{"result", appendPath, `{%s"parent_id":"{{c.call}}","role":"tool","tool_call_id":"call_1","content":"A"}`, `{%s"parent_id":"{{c.call}}","role":"tool","tool_call_id":"call_1","content":"B"}`, 1},
	{"chain", appendPath, `{"parent_id":"{{c.thanks}}","messages":[{%s"role":"user","content":"A"},{"role":"assistant","content":"B"}]}`,
		`{"parent_id":"{{c.thanks}}","messages":[{%s"role":"user","content":"A"},{"role":"assistant","content":"C"}]}`, 2},
	{"message under the active head", appendPath, `{%s"role":"user","content":"A"}`, `{%s"role":"user","content":"B"}`, 1},
	{"chain under the active head", appendPath, `{"messages":[{%s"role":"user","content":"A"},{"role":"assistant","content":"B"}]}`,
		`{"messages":[{%s"role":"user","content":"A"},{"role":"assistant","content":"C"}]}`, 2},
	{"graft", conversationPathOf + "/branches/{{c.thanks}}/grafts", `{%s"from_head_id":"{{c.third}}"}`, `{%s"from_head_id":"{{c.third}}","include":"messages"}`, 1},
	{"fork", conversationPathOf + "/messages/{{c.thanks}}/fork", `{%s"title":"A"}`, `{%s"title":"B"}`, 5},
}

func (a *testAPI) rows() (n int) {
	a.t.Helper()
	check.NoError(a.t, a.pool.QueryRow(a.t.Context(), "select (select count(*) from conversations) + (select count(*) from nodes where kind = 'message')").Scan(&n))
	return n
}

// TestCreatesAreIdempotent makes each thing twice. One key names different things in
// different places.
func TestCreatesAreIdempotent(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, c := range creates {
		for _, how := range []string{"id", "Idempotency-Key", "both"} {
			chain := strings.HasPrefix(c.name, "chain")
			if chain && how == "id" {
				continue // a chain needs an id for each message; see TestRoutes
			}
			t.Run(c.name+" by "+how, func(t *testing.T) {
				a := a.with(t)
				plant(t, a.store, t.Name())
				fill := func(s string) string { return fill(strings.ReplaceAll(s, "{{c", "{{"+t.Name())) }
				id, header := "", map[string]string{}
				if how != "Idempotency-Key" {
					id = fmt.Sprintf(`"id":"%s",`, named(t.Name()+" given"))
				}
				if how != "id" {
					header["Idempotency-Key"] = "a key: " + how
				}
				r := request{method: "POST", path: fill(c.path), body: fill(fmt.Sprintf(c.body, id)), header: header}
				before := a.rows()
				first := a.must(201, nil, r)
				check.Equal(t, "rows added", a.rows()-before, c.rows)
				state := a.state()
				again := a.must(200, nil, r)
				check.Equal(t, "the same again", string(again.body), string(first.body))
				r.body = fill(fmt.Sprintf(c.otherBody, id))
				field := "id"
				if how == "Idempotency-Key" || chain { // whose second message has no id of its own
					field = "Idempotency-Key"
				}
				if p := a.refused(409, CodeIDConflict, r); deref(p.Field) != field || !strings.Contains(p.Detail, "Send") {
					t.Errorf("the conflict is of %q, want %q: %s", deref(p.Field), field, p.Detail)
				}
				check.Equal(t, "what is stored", a.state(), state)
				if how != "Idempotency-Key" && !strings.Contains(string(first.body), named(t.Name()+" given").String()) {
					t.Errorf("the body's id didn't count: %s", first.body)
				}
				if how == "Idempotency-Key" {
					r.header = map[string]string{"Idempotency-Key": "another: " + t.Name()}
					a.must(201, nil, r)
				}
			})
		}
	}
}
