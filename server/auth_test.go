package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/tree"
)

// emptyStore and noKeys are for tests of what never reaches the database.
var emptyStore = tree.New(nil)

type noKeys struct{}

func (noKeys) Verify(context.Context, string) (keys.Key, error) { return keys.Key{}, keys.ErrUnknown }
func (noKeys) Any(context.Context) (bool, error)                { return false, nil }

type brokenKeys struct{}

var errBroken = errors.New("the wires are cut")

func (brokenKeys) Verify(context.Context, string) (keys.Key, error) { return keys.Key{}, errBroken }
func (brokenKeys) Any(context.Context) (bool, error)                { return false, errBroken }

func (a *testAPI) newKey(tenant string) (keys.Key, string) {
	a.t.Helper()
	key, secret, err := a.keys.Create(a.t.Context(), tenant, "")
	if err != nil {
		a.t.Fatal(err)
	}
	return key, secret
}

func bearer(secret string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + secret}
}

func TestWithoutKeysEverythingIsTheDefaultTenants(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	for _, header := range []map[string]string{nil, bearer("sk-whatever-a-library-sends"), {"Authorization": "Basic eDp5"}} {
		a.must(200, nil, request{method: "GET", path: fill(conversationPathOf), header: header})
	}
}

func TestOnceThereIsAKeyEveryRequestNeedsOne(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
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
		{"another header", map[string]string{"X-Api-Key": secret}, CodeMissingKey},
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
		if got := res.Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer") {
			t.Errorf("%s: WWW-Authenticate is %q", c.name, got)
		}
	}
	a.must(401, nil, request{method: "GET", path: path + "?query=" + secret}) // a key in the query is none
	for _, header := range []map[string]string{bearer(secret), {"Authorization": "bearer  " + secret}} {
		a.must(200, nil, request{method: "GET", path: path, header: header})
	}
	for _, open := range []string{"/healthz", "/readyz", "/metrics", "/openapi.yaml"} {
		a.must(200, nil, request{method: "GET", path: open})
	}
	if _, err := a.keys.Revoke(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	a.refused(401, CodeInvalidKey, request{method: "GET", path: path, header: bearer(secret)})
	a.refused(401, CodeMissingKey, request{method: "GET", path: path}) // the last key gone doesn't open the server
	if strings.Contains(a.log.String(), secret[:20]) {
		t.Error("the log has a key")
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
		if strings.Contains(p.Detail, "wires") {
			t.Errorf("the answer tells the cause: %s", p.Detail)
		}
		if !strings.Contains(a.log.String(), "wires") {
			t.Error("the log doesn't tell the cause")
		}
	}
}

// TestTenantsDontSeeEachOther sends every request with an id in it three
// times: for what is one's own, another tenant's, and nobody's. The last two
// must answer alike, byte for byte, and change nothing.
func TestTenantsDontSeeEachOther(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store.ForTenant("own"), "own")
	plant(t, a.store.ForTenant("other"), "other")
	_, secret := a.newKey("own")
	a.newKey("other")

	// %[1]s is the conversation, %[2]s one of its messages.
	requests := []struct{ method, path, body string }{
		{"GET", "/v1/conversations/%[1]s", ""},
		{"GET", "/v1/conversations/%[1]s/tree", ""},
		{"GET", "/v1/conversations/%[1]s/tree?preview=10", ""},
		{"GET", "/v1/conversations/%[1]s/branches", ""},
		{"GET", "/v1/conversations/%[1]s/branches/active/transcript", ""},
		{"GET", "/v1/conversations/%[1]s/branches/%[2]s/transcript", ""},
		{"GET", "/v1/conversations/%[1]s/messages/%[2]s", ""},
		{"GET", "/v1/conversations/%[1]s/messages/%[2]s/children", ""},
		{"GET", "/v1/conversations/%[1]s/messages/%[2]s/newest-leaf", ""},
		{"GET", "/v1/search?query=hazel&conversation_id=%[1]s", ""},
		{"GET", "/v1/conversations/%[1]s/export", ""},
		{"GET", "/v1/conversations/%[1]s/export?format=markdown", ""},
		{"GET", "/v1/conversations/%[1]s/export?format=markdown&head_id=%[2]s", ""},
		{"POST", "/v1/conversations/%[1]s/messages", `{"parent_id":"%[2]s","role":"user","content":"x"}`},
		{"POST", "/v1/conversations/%[1]s/messages", `{"parent_id":null,"role":"user","content":"x"}`},
		{"POST", "/v1/conversations/%[1]s/messages", `{"parent_id":"%[2]s","messages":[{"role":"user","content":"x"}]}`},
		{"POST", "/v1/conversations/%[1]s/messages/%[2]s/fork", `{}`},
		{"PATCH", "/v1/conversations/%[1]s", `{"title":"x","head_id":"%[2]s"}`},
		{"PATCH", "/v1/conversations/%[1]s", `{"title":"x"}`},
		{"DELETE", "/v1/conversations/%[1]s/messages/%[2]s", ""},
		{"DELETE", "/v1/conversations/%[1]s", ""},
	}
	of := func(name string, r struct{ method, path, body string }) request {
		conversation, message := named(name), named(name+".third")
		out := request{method: r.method, path: fmt.Sprintf(r.path+"%.0[1]s%.0[2]s", conversation, message), header: bearer(secret)}
		if r.body != "" {
			out.body = fmt.Sprintf(r.body+"%.0[1]s%.0[2]s", conversation, message)
		}
		return out
	}
	before := a.state()
	for _, r := range requests {
		others, absent := a.send(of("other", r)), a.send(of("absent", r))
		if others.StatusCode != 404 || absent.StatusCode != 404 {
			t.Errorf("%s %s: another's answers %d, nobody's %d, want 404: %s", r.method, r.path, others.StatusCode, absent.StatusCode, others.body)
		}
		if !bytes.Equal(others.body, absent.body) {
			t.Errorf("%s %s: another's and nobody's differ:\n%s\n%s", r.method, r.path, others.body, absent.body)
		}
		for name := range others.Header {
			if name != "X-Request-Id" && name != "Date" && others.Header.Get(name) != absent.Header.Get(name) {
				t.Errorf("%s %s: header %s differs: %q and %q", r.method, r.path, name, others.Header.Get(name), absent.Header.Get(name))
			}
		}
		// Another tenant's message in one's own conversation.
		mixed := r
		mixed.path = strings.ReplaceAll(r.path, "%[1]s", named("own").String())
		if strings.Contains(mixed.path+mixed.body, "%[2]s") {
			others, absent := a.send(of("other", mixed)), a.send(of("absent", mixed))
			if others.StatusCode < 400 || !bytes.Equal(others.body, absent.body) {
				t.Errorf("%s %s: another's message and nobody's differ:\n%s\n%s", r.method, mixed.path, others.body, absent.body)
			}
		}
	}
	if a.state() != before {
		t.Error("a request for another's changed something")
	}
	for _, list := range []string{"/v1/conversations", "/v1/conversations?query=hazel", "/v1/search?query=hazel"} {
		res := a.must(200, nil, request{method: "GET", path: list, header: bearer(secret)})
		if bytes.Contains(res.body, []byte(named("other").String())) || !bytes.Contains(res.body, []byte(named("own").String())) {
			t.Errorf("%s shows %s", list, res.body)
		}
	}
	for _, r := range requests {
		if res := a.send(of("own", r)); res.StatusCode >= 300 {
			t.Errorf("%s %s: one's own answers %d: %s", r.method, r.path, res.StatusCode, res.body)
		}
	}
}
