package server

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// What deletes, shares or takes out a tenant's data stands in its audit, with who asked
// for it, and in no other tenant's.
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
			if e["key_id"] != key.ID.String() || e["address"] != "192.0.2.7" {
				t.Errorf("%v", e)
			}
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
