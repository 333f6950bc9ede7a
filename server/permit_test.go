package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
)

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
	if len(page.Data) != 1 || page.Data[0]["name"] != "browser" || page.Data[0]["expires_at"] != end || page.Data[0]["key"] != nil {
		t.Errorf("%v", page.Data)
	}
	next := page.Next
	page.Next = ""
	a.must(200, &page, request{method: "GET", path: "/v1/keys?limit=1&cursor=" + next, header: admin})
	if len(page.Data) != 1 || page.Data[0]["name"] != "backend" || page.Next != "" {
		t.Errorf("%v", page)
	}
	revoke := request{method: "DELETE", path: "/v1/keys/" + made.ID}
	revoke.header = bearer(other)
	a.refused(404, "key_not_found", revoke)
	revoke.header = admin
	a.must(204, nil, revoke)
	a.refused(401, CodeInvalidKey, request{method: "GET", path: "/v1/me", header: bearer(made.Key)})
}
