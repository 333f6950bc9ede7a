package mcp_test

import (
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
		for trips, broke := 0, true; broke && !t.Failed(); trips++ {
			if trips == 50 {
				t.Fatalf("%s asks the database for ever", tool.Name)
			}
			var res *sdk.CallToolResult
			if tool.Annotations.ReadOnlyHint {
				fragile.Break(trips, dbtest.AfterSending)
				if res = c.send(tool.Name, arguments); fragile.Mend() {
					c.isAway(tool.Name, res)
				}
			}
			fragile.Break(trips, dbtest.BeforeSending)
			res = c.send(tool.Name, arguments)
			if broke = fragile.Mend(); broke {
				c.isAway(tool.Name, res)
			} else if res.IsError {
				t.Errorf("%s: %s", tool.Name, textOf(res))
			}
		}
	}
	fragile.Break(0, dbtest.BeforeSending)
	if _, err := c.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "coppice://conversations/" + id.String()}); err == nil || !isUnavailable(err.Error()) {
		t.Errorf("a resource: %v", err)
	}
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

// isAway holds that a result says that the database is away.
func (c *client) isAway(tool string, res *sdk.CallToolResult) {
	c.t.Helper()
	if !res.IsError || !isUnavailable(textOf(res)) {
		c.t.Errorf("%s: %s", tool, textOf(res))
	}
}

func isUnavailable(text string) bool { return strings.Contains(text, "database_unavailable") }
