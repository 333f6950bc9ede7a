package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
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
			got := strings.Contains(string(res.body), named("c").String()) || strings.Contains(string(res.body), "wood")
			check.That(t, got == want, "that %s sees it in %s is %t: %s", name, path, got, res.body)
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
	end := l.toEnd()
	check.That(t, end.name == "reply.completed", "%s: %s", end.name, end.data)
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

// mint makes a key of the tenant own.
func (a *testAPI) mint(n keys.NewKey) (keys.Key, map[string]string) {
	a.t.Helper()
	n.TenantID = "own"
	key, secret, err := a.keys.Mint(a.t.Context(), access.Principal{}, n)
	check.NoError(a.t, err)
	return key, bearer(secret)
}

// What a key may do follows from its role and its scope.
func TestPermits(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, id := range []string{"one", "two"} {
		plant(t, a.store.ForTenant("own"), id)
	}
	_, admin := a.mint(keys.NewKey{})
	_, operator := a.mint(keys.NewKey{Role: access.Operator})
	_, member := a.mint(keys.NewKey{Role: access.Member})
	_, reader := a.mint(keys.NewKey{ReadOnly: true})
	_, one := a.mint(keys.NewKey{ConversationID: named("one")})
	const text = `{"role":"user","content":"hazel"}`
	for i, tt := range []struct {
		who          map[string]string
		method, path string
		body         string
		status       int
	}{
		{reader, "GET", "/v1/conversations", "", 200},
		{reader, "POST", "/v1/conversations", "", 403},
		{reader, "POST", "/v1/conversations/{{one}}/messages", text, 403},
		{reader, "DELETE", "/v1/conversations/{{one}}", "", 403},
		{one, "GET", "/v1/conversations/{{one}}", "", 200},
		{one, "POST", "/v1/conversations/{{one}}/messages", text, 201},
		{one, "GET", "/v1/me", "", 200},
		{one, "GET", "/v1/models", "", 200},
		{one, "GET", "/v1/conversations/{{two}}", "", 404},
		{one, "GET", "/v1/conversations", "", 403},
		{one, "GET", "/v1/search?query=hazel", "", 403},
		{one, "GET", "/v1/events?follow=false", "", 403},
		{one, "GET", "/v1/conversations/{{one}}/branches/active/recall?query=hazel", "", 200},
		{one, "GET", "/v1/conversations/{{one}}/branches/active/recall?query=hazel&scope=tenant", "", 403},
		{one, "POST", "/v1/conversations/{{one}}/messages/{{one.third}}/fork", "", 403},
		{member, "GET", "/v1/keys", "", 403},
		{member, "POST", "/v1/keys", `{"name":"a"}`, 403},
		{member, "GET", "/v1/audit-events", "", 403},
		{admin, "GET", "/v1/keys", "", 200},
		{admin, "GET", "/v1/keys?tenant_id=other", "", 403},
		{admin, "GET", "/v1/audit-events?tenant_id=other", "", 403},
		{admin, "POST", "/v1/keys", `{"name":"a","tenant_id":"other"}`, 403},
		{admin, "POST", "/v1/keys", `{"name":"a","role":"operator"}`, 400},
		{operator, "POST", "/v1/keys", `{"name":"a","tenant_id":"other","role":"operator"}`, 201},
		{operator, "GET", "/v1/audit-events?tenant_id=other", "", 200},
	} {
		res := a.send(request{method: tt.method, path: fill(tt.path), body: fill(tt.body), header: tt.who})
		check.Equal(t, fmt.Sprint(i, " ", tt.method, " ", tt.path), res.StatusCode, tt.status)
	}
	a.sameAnswer(request{method: "GET", path: fill("/v1/conversations/{{two}}"), header: one}, request{method: "GET", path: fill("/v1/conversations/{{absent}}"), header: one})
}

// A backend makes a short-lived key for a browser, sees it in the list, and ends it.
func TestKeysOverREST(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	_, admin := a.mint(keys.NewKey{Name: "backend"})
	_, other := a.newKey("other")
	end := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
	var made struct{ ID, Key, Role string }
	a.must(201, &made, request{method: "POST", path: "/v1/keys", header: admin, body: `{"name":"browser","user_id":"ada","conversation_id":"` + named("c").String() + `","expires_at":"` + end + `"}`})
	const me = `{"tenant_id":"own","user_id":"ada","role":"member","read_only":false,"conversation_id":"%s","key_id":"%s","sign_out":null}`
	check.Equal(t, "who asks", a.tells(200, get("/v1/me").as(made.Key)), fmt.Sprintf(me, named("c"), made.ID))
	var page struct {
		Data []map[string]any
		Next string `json:"next_cursor"`
	}
	a.must(200, &page, request{method: "GET", path: "/v1/keys?limit=1", header: admin})
	check.That(t, len(page.Data) == 1 && page.Data[0]["name"] == "browser" && page.Data[0]["expires_at"] == end && page.Data[0]["key"] == nil,
		"%v", page.Data)
	next := page.Next
	page.Next = ""
	a.must(200, &page, request{method: "GET", path: "/v1/keys?limit=1&cursor=" + next, header: admin})
	check.That(t, len(page.Data) == 1 && page.Data[0]["name"] == "backend" && page.Next == "", "%v", page)
	revoke := request{method: "DELETE", path: "/v1/keys/" + made.ID}
	revoke.header = bearer(other)
	a.refused(404, "key_not_found", revoke)
	revoke.header = admin
	a.must(204, nil, revoke)
	a.refused(401, CodeInvalidKey, request{method: "GET", path: "/v1/me", header: bearer(made.Key)})
}

// emptyStore is for tests of what never reaches the database.
var emptyStore = tree.New(nil)

type brokenKeys struct{}

var errBroken = errors.New("the wires are cut")

func (brokenKeys) Verify(context.Context, string) (keys.Key, error) { return keys.Key{}, errBroken }
func (brokenKeys) Known(string) bool                                { return false }
func (brokenKeys) Made(context.Context, string) bool                { return false }
func (brokenKeys) Any(context.Context) (bool, error)                { return false, errBroken }

func (a *testAPI) newKey(tenant string) (keys.Key, string) {
	a.t.Helper()
	key, secret, err := a.keys.Create(a.t.Context(), tenant, "")
	check.NoError(a.t, err)
	return key, secret
}

// newOperator makes a key that every route takes.
func (a *testAPI) newOperator(tenant string) (secret string) {
	a.t.Helper()
	_, secret, err := a.keys.Mint(a.t.Context(), access.Principal{}, keys.NewKey{TenantID: tenant, Role: access.Operator})
	check.NoError(a.t, err)
	return secret
}

func bearer(secret string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + secret}
}

// Without keys, everything is the default tenant's. Once there is one, every request needs one.
func TestOnceThereIsAKeyEveryRequestNeedsOne(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	for _, header := range []map[string]string{nil, bearer("sk-whatever-a-library-sends"), {"Authorization": "Basic eDp5"}} {
		a.must(200, nil, request{method: "GET", path: fill(conversationPathOf), header: header})
	}
	key, secret := a.newKey(tree.DefaultTenant)
	path := fill(conversationPathOf)
	other := "A"
	if strings.HasSuffix(secret, "A") {
		other = "B"
	}
	for _, c := range []struct {
		name   string
		header map[string]string
		code   Code
	}{
		{"none", nil, CodeMissingKey},
		{"another scheme", map[string]string{"Authorization": "Basic " + secret}, CodeMissingKey},
		{"no scheme", map[string]string{"Authorization": secret}, CodeMissingKey},
		{"empty", bearer(""), CodeMissingKey},
		{"another header", map[string]string{"X-Key": secret}, CodeMissingKey},
		{"one letter off", bearer(secret[:len(secret)-1] + other), CodeInvalidKey},
		{"cut", bearer(secret[:20]), CodeInvalidKey},
		{"another's form", bearer("sk-" + strings.Repeat("a", 48)), CodeInvalidKey},
	} {
		for _, r := range []request{
			{method: "GET", path: path},
			{method: "DELETE", path: path},
			{method: "POST", path: "/v1/conversations", body: `{}`},
			{method: "POST", path: fill(appendPath), body: `not even JSON`},
		} {
			r.header = c.header
			a.refused(401, c.code, r)
		}
		res := a.must(401, nil, request{method: "GET", path: path, header: c.header})
		got := res.Header.Get("WWW-Authenticate")
		check.That(t, strings.HasPrefix(got, "Bearer"), "%s: WWW-Authenticate is %q", c.name, got)
	}
	a.must(401, nil, request{method: "GET", path: path + "?query=" + secret}) // a key in the query is none
	for _, header := range []map[string]string{bearer(secret), {"Authorization": "bearer  " + secret}, {"X-Api-Key": secret}, {"Api-Key": secret}} {
		a.must(200, nil, request{method: "GET", path: path, header: header})
	}
	for _, open := range []string{"/healthz", "/readyz", "/metrics", "/openapi.yaml", "/docs"} {
		a.must(200, nil, request{method: "GET", path: open})
	}
	check.Must(a.keys.Revoke(t.Context(), key.ID))(t)
	a.refused(401, CodeInvalidKey, request{method: "GET", path: path, header: bearer(secret)})
	a.refused(401, CodeMissingKey, request{method: "GET", path: path}) // the last key gone doesn't open the server
	check.Lacks(t, "the log", a.log.String(), secret[:20])
}

// Metrics need a key where the server has keys, unless a program of this machine asks.
func TestMetricsNeedAKeyFromElsewhere(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.Loopback = false })
	check.Equal(t, "without keys: status", a.direct("192.0.2.1:99", "http://localhost/metrics", nil).Code, 200)
	_, secret := a.newKey("own")
	for _, c := range []struct {
		remote, host string
		header       map[string]string
		want         int
	}{
		{"127.0.0.1:99", "localhost", nil, 200},
		{"[::1]:99", "[::1]:8787", nil, 200},
		{"192.0.2.1:99", "localhost", nil, 401},
		{"192.0.2.1:99", "localhost", bearer(secret), 200},
		{"127.0.0.1:99", "localhost", map[string]string{"X-Forwarded-For": "127.0.0.1"}, 401},
		{"127.0.0.1:99", "localhost", map[string]string{"Forwarded": "for=192.0.2.1"}, 401},
		{"127.0.0.1:99", "192.0.2.7", nil, 401},
	} {
		check.Equal(t, fmt.Sprintf("%+v: status", c), a.direct(c.remote, "http://"+c.host+"/metrics", c.header).Code, c.want)
	}
}

func TestRequireKey(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.RequireKey = true })
	a.refused(401, CodeMissingKey, request{method: "GET", path: "/v1/conversations"})
	a.must(200, nil, request{method: "GET", path: "/healthz"})
}

func TestKeysThatCantBeReadOpenNothing(t *testing.T) {
	t.Parallel()
	for _, require := range []bool{false, true} {
		a := newAPI(t, func(c *Config) { c.Keys, c.RequireKey = brokenKeys{}, require })
		p := a.refused(500, CodeInternalError, request{method: "GET", path: "/v1/conversations", header: bearer("cop_x")})
		check.Lacks(t, "the detail", p.Detail, "wires")
		check.Has(t, "the log", a.log.String(), "wires")
	}
}
