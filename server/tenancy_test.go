package server

import (
	"fmt"
	"strings"
	"testing"
)

// TestTenantsDontSeeEachOther visits every operation with what is one's own,
// another tenant's, and nobody's. The last two must answer alike, byte for
// byte, and change nothing. Only what is made anew under a given id can't help
// telling that the id is taken.
func TestTenantsDontSeeEachOther(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store.ForTenant("own"), "own")
	plant(t, a.store.ForTenant("other"), "other")
	_, secret := a.newKey("own")
	a.newKey("other")
	plants := 0
	eachVisit(t, func(t *testing.T, r specRoute, v visit) {
		a := a.with(t)
		before := a.state()
		for _, pair := range [][2]whose{
			{{"other", "other", "hazel"}, {"absent", "absent", "hazel"}},
			{{"own", "other", "hazel"}, {"own", "absent", "hazel"}}, // their messages in one's own conversation
			{{"other", "own", "hazel"}, {"absent", "own", "hazel"}}, // one's own in theirs
		} {
			if !v.nothing && !v.takes && (pair[0].conversation != "own" || v.namesMessage(r)) {
				a.sameAnswer(v.request(r, pair[0], secret), v.request(r, pair[1], secret))
			}
		}
		if v.takes {
			p := whose{"other", "own", "hazel"}
			if r.operation == "forkMessage" { // of one's own, by the id of another's
				req := v.request(r, whose{"own", "own", "hazel"}, secret)
				req.body = strings.ReplaceAll(req.body.(string), named("own").String(), named("other").String())
				a.refused(409, CodeIDConflict, req)
			} else if res := a.send(v.request(r, p, secret)); res.StatusCode != v.status || strings.Contains(string(res.body), "Coppicing") {
				t.Errorf("%d: %s", res.StatusCode, res.body)
			}
		}
		if !v.nothing && a.state() != before {
			t.Fatal("a request for another's changed something")
		}
		plants++
		own := fmt.Sprint("own ", plants)
		plant(t, a.store.ForTenant("own"), own)
		res := a.must(v.status, nil, v.request(r, whose{own, own, "hazel"}, secret))
		if strings.Contains(string(res.body), named("other").String()) {
			t.Errorf("one's own answer shows another's: %s", res.body)
		}
	})
	for _, list := range []string{"/v1/conversations", "/v1/conversations?query=hazel", "/v1/search?query=hazel"} {
		res := a.must(200, nil, request{method: "GET", path: list, header: bearer(secret)})
		if strings.Contains(string(res.body), named("other").String()) || !strings.Contains(string(res.body), `"conversation_id":"`) && !strings.Contains(string(res.body), `"title":"Coppicing"`) {
			t.Errorf("%s shows %s", list, res.body)
		}
	}
}

// sameAnswer sends two requests that must be refused alike.
func (a *testAPI) sameAnswer(one, other request) {
	a.t.Helper()
	x, y := a.send(one), a.send(other)
	if x.StatusCode < 400 || x.StatusCode != y.StatusCode || string(x.body) != string(y.body) {
		a.t.Errorf("%s %s answers %d and %d:\n%s\n%s", one.method, one.path, x.StatusCode, y.StatusCode, x.body, y.body)
	}
	for _, h := range []response{x, y} {
		h.Header.Del("X-Request-Id")
		h.Header.Del("Date")
	}
	if fmt.Sprint(x.Header) != fmt.Sprint(y.Header) {
		a.t.Errorf("%s %s: the headers differ:\n%v\n%v", one.method, one.path, x.Header, y.Header)
	}
}

// TestRevokedKeyOpensNoRoute visits every operation with a key that was good.
func TestRevokedKeyOpensNoRoute(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store.ForTenant("own"), "own")
	key, secret := a.newKey("own")
	a.must(200, nil, request{method: "GET", path: "/v1/conversations", header: bearer(secret)})
	if _, err := a.keys.Revoke(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	before := a.state()
	eachVisit(t, func(t *testing.T, r specRoute, v visit) {
		status := 401
		if !strings.HasPrefix(r.path, "/v1/") {
			status = 200
		}
		a.with(t).must(status, nil, v.request(r, whose{"own", "own", "hazel"}, secret))
	})
	if a.state() != before {
		t.Error("a revoked key changed something")
	}
}
