package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/tree"
)

// emptyStore and noKeys are for tests of what never reaches the database.
var emptyStore = tree.New(nil)

type noKeys struct{}

func (noKeys) Verify(context.Context, string) (keys.Key, error) { return keys.Key{}, keys.ErrUnknown }
func (noKeys) Known(string) bool                                { return false }
func (noKeys) Made(context.Context, string) bool                { return false }
func (noKeys) Any(context.Context) (bool, error)                { return false, nil }

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
		if got := res.Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer") {
			t.Errorf("%s: WWW-Authenticate is %q", c.name, got)
		}
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
