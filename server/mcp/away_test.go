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
	on := m{"conversation_id": id.String(), "head_id": ids[3].String()}
	calls := map[string]m{
		"search":              {"query": "hazel"},
		"fetch":               {"id": id.String() + "/" + ids[3].String()},
		"recall":              {"question": "hazel", "conversation_id": id.String()},
		"list_conversations":  {"query": "hazel"},
		"list_branches":       {"conversation_id": id.String()},
		"read_branch":         on,
		"explain_context":     on,
		"create_conversation": {"title": "Woods"},
		"append_messages":     {"conversation_id": id.String(), "parent_id": ids[3].String(), "messages": []m{{"role": "user", "content": "x"}}},
		"fork_branch":         {"conversation_id": id.String(), "message_id": ids[3].String()},
		"compact_branch":      on,
	}
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
