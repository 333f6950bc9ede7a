package server

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/keys"
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
	if res := a.must(200, nil, all); !strings.Contains(string(res.body), `{"data":[{"id":"gone","conversations":1,"messages":8,"attachments":1,`) {
		t.Errorf("%s", res.body)
	}
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
