package db_test

import (
	"testing"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// The migration makes keys of tenants by the expression below.
func TestTenantKeyIsThatOfTheMigration(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	for _, tenant := range []string{"default", "", "acme", "été", "a'b\\c"} {
		var want string
		check.NoError(t, pool.QueryRow(t.Context(), "select left(encode(sha256(convert_to($1, 'UTF8')), 'base64'), 8)", tenant).Scan(&want))
		got := db.TenantKey(tenant)
		check.That(t, got == want, "%q has the key %s, in the migration %s", tenant, got, want)
	}
}
