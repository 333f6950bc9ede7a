package server

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/quota"
)

// An operator lists and deletes tenants. An admin deletes what is old in its own, also private.
func TestTenantsOverREST(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store.ForTenant("gone"), "c")
	plant(t, a.store.For(access.Principal{Tenant: "own", User: "ada"}), "d")
	_, admin := a.mint(keys.NewKey{})
	_, operator := a.mint(keys.NewKey{Role: access.Operator})
	all := request{method: "GET", path: "/v1/tenants", header: admin}
	a.refused(403, CodeNotPermitted, all)
	all.header = operator
	a.tells(200, all, `{"data":[{"id":"gone","conversations":1,"messages":8,"attachments":1,`)
	one := request{method: "DELETE", path: "/v1/tenants/gone", header: operator}
	res := a.must(200, nil, one)
	check.That(t, strings.HasPrefix(string(res.body), `{"id":"gone","conversations":1,"messages":8,"attachments":1,`), "%s", res.body)
	a.refused(404, "tenant_not_found", one)
	one.path = "/v1/tenants/own"
	a.refused(409, "last_keys", one)
	var went struct{ Conversations, Messages int }
	a.must(200, &went, request{method: "DELETE", path: "/v1/conversations?before=2999-01-01T00:00:00Z", header: admin})
	check.Equal(t, "what went", fmt.Sprint(went), "{1 8}")
}

// A tenant at its limit reads, and is told when it may store again. Limits can always be set.
func TestDailyLimits(t *testing.T) {
	t.Parallel()
	var q *quota.Quota
	a := newAPI(t, func(c *Config) { q = c.Quota })
	_, own := a.mint(keys.NewKey{})
	_, operator := a.mint(keys.NewKey{Role: access.Operator})
	limits := request{method: "PATCH", path: "/v1/tenants/own/limits", header: operator, body: `{"messages":1,"cost":2.5}`}
	check.Equal(t, "the answer", string(a.must(200, nil, limits).body), `{"used":{"requests":0,"messages":0,"bytes":0,"cost":0},"limits":{"requests":0,"messages":1,"bytes":0,"cost":2.5}}`)
	create := request{method: "POST", path: "/v1/conversations", header: own, body: `{}`}
	a.must(201, nil, create)
	q.Add("own", quota.Amount{Messages: 1})
	check.NoError(t, q.Store(t.Context()))
	a.refused(429, CodeDailyLimit, create)
	wait, err := strconv.Atoi(a.send(create).Header.Get("Retry-After"))
	check.That(t, err == nil && wait >= 1 && wait <= 24*60*60+1, "Retry-After is %d, %v", wait, err)
	list := request{method: "GET", path: "/v1/conversations", header: own}
	a.must(200, nil, list)
	limits.body = `{"requests":1,"messages":0}`
	a.must(200, nil, limits)
	check.NoError(t, q.Store(t.Context()))
	a.refused(429, CodeDailyLimit, list)
	limits.body = `{"requests":0,"bytes":-1}`
	a.refused(400, CodeInvalidParameter, limits)
	a.must(200, nil, request{method: "GET", path: "/v1/tenants/own/limits", header: operator})
}

// A tenant's audit tells what deletes, shares or takes out its data, and who asked for it.
func TestAudit(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	plant(t, a.store.ForTenant("own"), "c")
	key, secret := a.newKey("own")
	_, other := a.newKey("other")
	by := func(id, secret string) map[string]string {
		return map[string]string{"Authorization": "Bearer " + secret, "X-Forwarded-For": "192.0.2.7", "X-Request-Id": id}
	}
	var share struct{ ID string }
	a.must(201, &share, request{method: "POST", path: fill("/v1/conversations/{{c}}/branches/active/shares"), header: by("a", secret)})
	for _, r := range []request{
		{method: "GET", path: "/v1/conversations/{{c}}/export", header: by("b", secret)},
		{method: "DELETE", path: "/v1/conversations/{{c}}/shares/" + share.ID, header: by("c", secret)},
		{method: "DELETE", path: "/v1/conversations/{{c}}/messages/{{c.other}}", header: by("d", secret)},
		{method: "DELETE", path: "/v1/conversations/{{c}}", header: by("e", other)}, // refused
		{method: "DELETE", path: "/v1/conversations/{{c}}", header: by("f", secret)},
	} {
		r.path = fill(r.path)
		a.send(r)
	}
	conversation := named("c").String()
	want := []string{
		"f conversation.deleted " + conversation + " <nil> ",
		"d messages.pruned " + conversation + " " + named("c.other").String() + " 3 messages, 0 summaries",
		"c share.revoked " + conversation + " " + share.ID + " ",
		"b conversation.exported " + conversation + " <nil> jsonl",
		"a share.created " + conversation + " " + share.ID + " ",
	}
	var got []string
	for _, page := range a.pages(get("/v1/audit-events?limit=2").as(secret), nil) {
		for _, raw := range page {
			var e map[string]any
			if check.JSON(t, string(raw), &e); e["address"] == "" { // the store's own, of plant
				continue
			}
			got = append(got, fmt.Sprint(e["request_id"], " ", e["action"], " ", e["conversation_id"], " ", e["subject_id"], " ", e["detail"]))
			check.Equal(t, "who asked", fmt.Sprint(e["key_id"], " ", e["address"]), key.ID.String()+" 192.0.2.7")
		}
	}
	check.Equal(t, "the audit", fmt.Sprint(got), fmt.Sprint(want))
	var theirs struct{ Data []map[string]any }
	if a.must(200, &theirs, request{method: "GET", path: "/v1/audit-events", header: bearer(other)}); len(theirs.Data) != 1 || theirs.Data[0]["action"] != "key.created" {
		t.Errorf("another tenant's audit tells %v", theirs.Data)
	}
}

// Only what a trusted proxy says of a client's address counts.
func TestClientBehindProxies(t *testing.T) {
	t.Parallel()
	s := &Server{cfg: Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}}}
	for _, tt := range []struct{ remote, forwarded, want string }{
		{"192.0.2.1:9", "198.51.100.1", "192.0.2.1"},
		{"10.0.0.1:9", "", "10.0.0.1"},
		{"10.0.0.1:9", "198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:9", "203.0.113.9, 198.51.100.1, 10.0.0.2", "198.51.100.1"},
		{"10.0.0.1:9", "10.0.0.3,10.0.0.2", "10.0.0.3"},
		{"[::1]:9", "[2001:db8::1]:99", "2001:db8::1"},
		{"[::ffff:10.0.0.1]:9", "198.51.100.1:99", "198.51.100.1"},
		{"10.0.0.1:9", "198.51.100.1, unknown", "10.0.0.1"},
	} {
		r := &http.Request{RemoteAddr: tt.remote, Header: http.Header{"X-Forwarded-For": {tt.forwarded}}}
		check.Equal(t, fmt.Sprintf("from %s, forwarded for %q", tt.remote, tt.forwarded), s.clientOf(r).String(), tt.want)
	}
}
