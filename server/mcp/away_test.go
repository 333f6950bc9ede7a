package mcp_test

import (
	"net/http"
	"strings"
	"testing"
)

// A database that is away from the beginning, so that not even keys can be read.
func TestDatabaseIsAway(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	secret := a.key("own")
	a.pool.Close()
	res, body := a.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, map[string]string{"Authorization": "Bearer " + secret})
	if res.StatusCode != http.StatusServiceUnavailable || !isUnavailable(body) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func isUnavailable(text string) bool { return strings.Contains(text, "database_unavailable") }
