package server

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// newTeam serves a tenant whose people a proxy signs in; eve is its admin.
func newTeam(t *testing.T, more ...func(*Config)) *testAPI {
	return newAPI(t, append(more, func(c *Config) {
		c.AuthHeader, c.AuthGroupsHeader, c.People, c.TrustedProxies = "X-Forwarded-User", "X-Forwarded-Groups", access.People{Admins: []string{"eve"}, AdminGroups: []string{"ops"}}, []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})...)
}

func user(name string) map[string]string { return map[string]string{"X-Forwarded-User": name} }

// A conversation is its owner's until the owner shares it, also in lists, searches and
// tags. Others then go on with it, and only the owner and admins delete it.
func TestOwners(t *testing.T) {
	t.Parallel()
	a := newTeam(t)
	a.must(201, nil, request{method: "POST", path: "/v1/conversations", header: user("ada"), body: fill(`{"id":"{{c}}","title":"Hedges"}`)})
	a.must(201, nil, request{method: "POST", path: fill(appendPath), header: user("ada"), body: `{"parent_id":null,"role":"user","content":"hawthorn"}`})
	a.must(200, nil, request{method: "PATCH", path: fill(conversationPathOf), header: user("ada"), body: `{"tags":["wood"]}`})
	sees := func(name string, want bool) {
		t.Helper()
		for _, path := range []string{"/v1/conversations", "/v1/conversations?query=hawthorn", "/v1/search?query=hawthorn", "/v1/tags"} {
			res := a.must(200, nil, request{method: "GET", path: path, header: user(name)})
			if got := strings.Contains(string(res.body), named("c").String()) || strings.Contains(string(res.body), "wood"); got != want {
				t.Errorf("that %s sees it in %s is %t: %s", name, path, got, res.body)
			}
		}
		a.must(map[bool]int{true: 200, false: 404}[want], nil, request{method: "GET", path: fill(conversationPathOf), header: user(name)})
	}
	sees("ada", true)
	sees("bob", false)
	sees("eve", false)
	change := func(name, body string) request {
		return request{method: "PATCH", path: fill(conversationPathOf), body: body, header: user(name)}
	}
	a.refused(404, "conversation_not_found", change("bob", `{"visibility":"tenant"}`))
	a.tells(200, change("ada", `{"visibility":"tenant"}`), `"owner_id":"ada","visibility":"tenant"`)
	sees("bob", true)
	a.must(201, nil, request{method: "POST", path: fill(appendPath), header: user("bob"), body: `{"role":"assistant","content":"It has thorns."}`})
	a.refused(403, CodeNotPermitted, change("bob", `{"visibility":"private"}`))
	check.Equal(t, "the field", deref(a.refused(403, CodeNotPermitted, change("ada", `{"owner_id":"bob"}`)).Field), "owner_id")
	remove := request{method: "DELETE", path: fill(conversationPathOf), header: user("bob")}
	a.refused(403, CodeNotPermitted, remove)
	remove.header = user("eve")
	a.must(204, nil, remove)
}

// A reply that runs on this server is that of the conversation's readers, as one that has
// ended is.
func TestRunningRepliesOfOwners(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	a := newTeam(t, withModels(nil, model(t, llmtest.NewServer(t, llmtest.PauseMidway(gate, "The hedge is hawthorn.")))))
	a.must(201, nil, request{method: "POST", path: "/v1/conversations", header: user("ada"), body: fill(`{"id":"{{c}}"}`)})
	a.must(201, nil, request{method: "POST", path: fill(appendPath), header: user("ada"), body: `{"role":"user","content":"Which hedge?"}`})
	start := request{method: "POST", path: fill(conversationPathOf + "/branches/active/replies"), header: user("ada"), body: fill(`{"id":"{{r}}"}`)}
	l := a.listen(t.Context(), start)
	check.Must(l.next())(t)
	reply := fill(conversationPathOf + "/replies/{{r}}")
	start.header = user("bob")
	for _, r := range []request{{method: "DELETE", path: reply}, {method: "GET", path: reply + "/events"}, start} {
		r.header = user("bob")
		a.refused(404, "conversation_not_found", r)
	}
	close(gate)
	if end := l.toEnd(); end.name != "reply.completed" {
		t.Errorf("%s: %s", end.name, end.data)
	}
}

// A file is read by those who read a message that names it. A stream of a tenant's changes
// tells nobody of what they may not read.
func TestAttachmentsAndEventsOfOwners(t *testing.T) {
	t.Parallel()
	a := newTeam(t)
	start := a.must(200, nil, request{method: "GET", path: "/v1/events?follow=false", header: user("bob")})
	_, id, _ := strings.Cut(string(start.body), "id: ")
	id, _, _ = strings.Cut(id, "\n")
	for name, owner := range map[string]string{"c": "ada", "d": "bob"} {
		a.must(201, nil, request{method: "POST", path: "/v1/conversations", header: user(owner), body: fill(`{"id":"{{` + name + `}}"}`)})
	}
	file := "What ada uploads."
	a.must(201, nil, request{method: "POST", path: "/v1/attachments?name=a.txt", header: map[string]string{"X-Forwarded-User": "ada", "Content-Type": "application/octet-stream"}, body: file})
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(file)))
	a.must(201, nil, request{method: "POST", path: fill(appendPath), header: user("ada"), body: `{"parent_id":null,"role":"user","content":[{"type":"file","file":{"file_id":"coppice:attachment/` + hash + `","filename":"a.txt"}}]}`})
	for name, status := range map[string]int{"ada": 200, "bob": 404} {
		a.must(status, nil, request{method: "GET", path: "/v1/attachments/" + hash, header: user(name)})
	}
	header := user("bob")
	header["Last-Event-ID"] = id
	res := a.must(200, nil, request{method: "GET", path: "/v1/events?follow=false", header: header})
	check.Has(t, "what bob is told", string(res.body), named("d").String())
	check.Lacks(t, "what bob is told", string(res.body), named("c").String())
}

// Only a trusted proxy names a user, and without one every request needs a key.
func TestAuthHeader(t *testing.T) {
	t.Parallel()
	a := newTeam(t)
	_, secret := a.newKey("default")
	for i, tt := range []struct {
		remote, user, groups, key string
		status                    int
		want                      string
	}{
		{"127.0.0.1:9", "ada", "guests", "", 200, `"user_id":"ada","role":"member"`},
		{"127.0.0.1:9", "ada", "guests, ops", "", 200, `"user_id":"ada","role":"admin"`},
		{"127.0.0.1:9", "eve", "", "", 200, `"user_id":"eve","role":"admin"`},
		{"127.0.0.1:9", "ada", "", secret, 200, `"user_id":null,"role":"admin"`},
		{"127.0.0.1:9", "", "ops", "", 401, "missing_key"},
		{"127.0.0.1:9", "*", "", "", 400, "No user can be called"},
		{"192.0.2.1:9", "ada", "ops", "", 401, "missing_key"},
	} {
		header := map[string]string{"X-Forwarded-User": tt.user, "X-Forwarded-Groups": tt.groups}
		if tt.key != "" {
			header["Authorization"] = "Bearer " + tt.key
		}
		res := a.direct(tt.remote, "http://localhost/v1/me", header)
		check.Equal(t, fmt.Sprint("status ", i), res.Code, tt.status)
		check.Has(t, fmt.Sprint("case ", i), res.Body.String(), tt.want)
	}
}
