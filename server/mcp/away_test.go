package mcp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// TestDatabaseGoesAway calls every tool while the database goes away, before the
// first message to it, before the second one, and so on until there is a result.
// Each of the others says that the database is away.
func TestDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	fragile := dbtest.NewFragile(t, pool)
	a := newAPIOn(t, fragile.Pool, func(c *server.Config) { c.Keys = keys.New(pool) })
	c := a.over("")
	id, ids := plant(t, tree.New(pool), "hazel")
	calls := calls(id.String(), ids[3].String())
	tools, err := c.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		arguments, known := calls[tool.Name]
		if !known {
			t.Errorf("%s is not called", tool.Name)
		}
		prepare := func() func() dbtest.Answer {
			return func() dbtest.Answer {
				res := c.send(tool.Name, arguments)
				return dbtest.Answer{Away: res.IsError && isUnavailable(textOf(res)), Good: !res.IsError, Said: tool.Name + ": " + textOf(res)}
			}
		}
		fragile.EachBreak(t, dbtest.BeforeSending, prepare)
		if tool.Annotations.ReadOnlyHint {
			fragile.EachBreak(t, dbtest.AfterSending, prepare)
		}
	}
	fragile.EachBreak(t, dbtest.BeforeSending, func() func() dbtest.Answer {
		return func() dbtest.Answer {
			_, err := c.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "coppice://conversations/" + id.String()})
			return dbtest.Answer{Away: err != nil && isUnavailable(err.Error()), Good: err == nil, Said: fmt.Sprint(err)}
		}
	})
}

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
