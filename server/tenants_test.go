package server

import (
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/quota"
)

// An operator lists all tenants and deletes one. An admin deletes what is old in its own,
// also what is private.
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
	if res := a.must(200, nil, one); !strings.HasPrefix(string(res.body), `{"id":"gone","conversations":1,"messages":8,"attachments":1,`) {
		t.Errorf("%s", res.body)
	}
	a.refused(404, "tenant_not_found", one)
	one.path = "/v1/tenants/own"
	a.refused(409, "last_keys", one)
	var went struct{ Conversations, Messages int }
	a.must(200, &went, request{method: "DELETE", path: "/v1/conversations?before=2999-01-01T00:00:00Z", header: admin})
	if went.Conversations != 1 || went.Messages != 8 {
		t.Errorf("%+v went", went)
	}
}

// A tenant at its limit reads, and is told when it may store again. Nobody is kept from
// setting limits.
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
	if wait, err := strconv.Atoi(a.send(create).Header.Get("Retry-After")); err != nil || wait < 1 || wait > 24*60*60+1 {
		t.Errorf("Retry-After is %d, %v", wait, err)
	}
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
