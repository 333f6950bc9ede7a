package server

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// operations are those that take an operator's key: TestTenantsOverREST.
var operations = []string{"listTenants", "getTenant", "deleteTenant", "getTenantLimits", "setTenantLimits"}

// TestTenantsDontSeeEachOther visits every operation as a tenant beside others.
func TestTenantsDontSeeEachOther(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	_, secret := a.newKey("own")
	a.newKey("other")
	a.dontSee(a.store.ForTenant, bearer(secret), operations...)
}

// TestOwnersDontSeeEachOther visits every operation as one of a tenant's people beside
// others of the same tenant, whose conversations are private.
func TestOwnersDontSeeEachOther(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) {
		c.AuthHeader, c.TrustedProxies = "X-Forwarded-User", []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		c.People = access.People{Tenant: "acme", Admins: []string{"own"}}
	})
	a.dontSee(a.ofUser, map[string]string{"X-Forwarded-User": "own"}, append(operations, "getAttachment")...) // whose file no message names
}

// ofUser returns what a member of the tenant acme may do.
func (a *testAPI) ofUser(name string) *tree.Store {
	return a.store.For(access.Principal{Tenant: "acme", User: name, Role: access.Member})
}

// SessionsDontSeeEachOther visits every operation by the cookies of an admin, of a member and of
// nobody. TestSessions calls it, as package oidc imports this one.
func SessionsDontSeeEachOther(t *testing.T, in SignIn, cookie func(url, tenant, user string) string) {
	signIn := func(c *Config) { c.SignIn = in }
	except := append(operations, "getAttachment") // whose file no message names
	a := newAPI(t, signIn)
	header := map[string]string{"Cookie": cookie(a.url, "own", "eve")}
	a.dontSee(a.store.ForTenant, header, except...)
	a = newAPI(t, signIn)
	a.dontSee(a.ofUser, map[string]string{"Cookie": cookie(a.url, "acme", "own")}, append(except, "createKey", "deleteConversations", "listAuditEvents", "listKeys", "revokeKey")...)
	header["Cookie"] = header["Cookie"][:len(header["Cookie"])-1]
	eachVisit(t, func(t *testing.T, r specRoute, v visit) {
		if r.spec.Security == nil { // others need no key
			a.with(t).refused(401, CodeMissingKey, v.request(r, whose{"own", "own", "hazel"}, header))
		}
	})
}

// dontSee visits every operation with one's own ids, another's, and nobody's. The last two answer
// alike, byte for byte, and change nothing. An id that is to be made can't hide that it is taken:
// it answers as any other id that can't be had.
func (a *testAPI) dontSee(of func(name string) *tree.Store, header map[string]string, except ...string) {
	t := a.t.(*testing.T)
	plant(t, of("own"), "own")
	plant(t, of("other"), "other")
	plant(t, of("third"), "third")
	plants := 0
	eachVisit(t, func(t *testing.T, r specRoute, v visit) {
		if slices.Contains(except, r.operation) {
			return
		}
		a := a.with(t)
		before := a.state()
		for _, pair := range [][2]whose{
			{{"other", "other", "hazel"}, {"absent", "absent", "hazel"}},
			{{"own", "other", "hazel"}, {"own", "absent", "hazel"}}, // their messages in one's own conversation
			{{"other", "own", "hazel"}, {"absent", "own", "hazel"}}, // one's own in theirs
		} {
			if !v.nothing && !v.takes && (pair[0].conversation != "own" || v.namesMessage(r)) {
				a.sameAnswer(v.request(r, pair[0], header), v.request(r, pair[1], header))
			}
		}
		if v.takes {
			by := func(taken string) request {
				req := v.request(r, whose{"own", "own", "hazel"}, header)
				req.body = strings.ReplaceAll(req.body.(string), named("own").String(), named(taken).String())
				return req
			}
			like := "own"
			if r.operation == "createImport" { // which adds to what is one's own
				like = "third"
			}
			a.sameTaken(v.status, by("other"), by(like), named("other").String(), named(like).String())
		}
		check.Need(t, v.nothing || a.state() == before, "a request for another's changed something")
		plants++
		own := fmt.Sprint("own ", plants)
		plant(t, of("own"), own)
		res := a.must(v.status, nil, v.request(r, whose{own, own, "hazel"}, header))
		check.Lacks(t, "one's own answer", string(res.body), named("other").String())
	})
	for _, list := range []string{"/v1/conversations", "/v1/conversations?query=hazel", "/v1/search?query=hazel"} {
		res := a.must(200, nil, request{method: "GET", path: list, header: header})
		if strings.Contains(string(res.body), named("other").String()) || !strings.Contains(string(res.body), `"conversation_id":"`) && !strings.Contains(string(res.body), `"title":"Coppicing"`) {
			t.Errorf("%s shows %s", list, res.body)
		}
	}
}

// sameAnswer sends two requests that must be refused alike.
func (a *testAPI) sameAnswer(one, other request) {
	a.t.Helper()
	x, y := a.send(one), a.send(other)
	check.That(a.t, x.StatusCode >= 400 && x.StatusCode == y.StatusCode && string(x.body) == string(y.body),
		"%s %s answers %d and %d:\n%s\n%s", one.method, one.path, x.StatusCode, y.StatusCode, x.body, y.body)
	for _, h := range []response{x, y} {
		h.Header.Del("X-Request-Id")
		h.Header.Del("Date")
	}
	check.Equal(a.t, one.method+" "+one.path+": the headers", fmt.Sprint(x.Header), fmt.Sprint(y.Header))
}

// sameTaken sends two requests that must get the same answer but for the ids
// that they name, and that doesn't tell what has the id.
func (a *testAPI) sameTaken(status int, one, other request, oneID, otherID string) {
	a.t.Helper()
	x, y := a.must(status, nil, one), a.must(status, nil, other)
	for _, r := range []*response{&x, &y} {
		r.body = []byte(strings.NewReplacer(oneID, "ID", otherID, "ID").Replace(string(r.body)))
		r.Header.Del("X-Request-Id")
		r.Header.Del("Date")
		check.Lacks(a.t, one.method+" "+one.path, string(r.body), "tenant", "Coppicing")
	}
	check.That(a.t, string(x.body) == string(y.body) && fmt.Sprint(x.Header) == fmt.Sprint(y.Header),
		"%s %s: another's id answers\n%s\n%v\nand one that can't be had either\n%s\n%v", one.method, one.path, x.body, x.Header, y.body, y.Header)
}
