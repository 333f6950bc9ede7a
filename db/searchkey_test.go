package db_test

import (
	"testing"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
)

// The migration makes keys of tenants by the expression below.
func TestTenantKeyIsThatOfTheMigration(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	for _, tenant := range []string{"default", "", "acme", "été", "a'b\\c"} {
		var want string
		if err := pool.QueryRow(t.Context(), "select left(encode(sha256(convert_to($1, 'UTF8')), 'base64'), 8)", tenant).Scan(&want); err != nil {
			t.Fatal(err)
		}
		if got := db.TenantKey(tenant); got != want {
			t.Errorf("%q has the key %s, in the migration %s", tenant, got, want)
		}
	}
}

// The longer a tenant's messages are in all, the longer the hash, within what
// the index's functions take.
func TestSearchKey(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		messages int64
		bytes    int
		want     byte
	}{{0, 0, 'a'}, {1, 100, 'a'}, {1, 2800, 'b'}, {100, 2000, 'e'}, {8191, 1400, 'g'}, {8192, 1400, 'h'}, {1<<24 - 1, 700, 'l'}, {1 << 24, 700, 'm'}, {1 << 40, 1 << 18, 'm'}} {
		if got := db.SearchKey("default", test.messages, test.bytes); len(got) != 9 || got[8] != test.want || got[:8] != db.TenantKey("default") {
			t.Errorf("%d messages of %d bytes: %s, want … %c", test.messages, test.bytes, got, test.want)
		}
	}
}
