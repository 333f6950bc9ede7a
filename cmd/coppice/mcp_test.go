package main

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// An agent starts the program, and works with the conversations that the other
// commands show. What it appends queues compactions, as over REST.
func TestMCP(t *testing.T) {
	t.Parallel()
	program := check.Must(programPath())(t)
	url := dbtest.URL(t)
	env := []string{"DATABASE_URL=" + url}
	mustRun(t, env, "import", hedgeFile)
	ctx, cancel := context.WithTimeout(t.Context(), 5*timeout)
	defer cancel()
	command := exec.Command(program, "mcp", "--max-context-tokens", "2000", "--reserved-tokens", "500")
	command.Env = append(environment(), env...)
	session := check.Must(sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &sdk.CommandTransport{Command: command}, nil))(t)
	call := func(tool string, arguments map[string]any) (text string) {
		t.Helper()
		res := check.Must(session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments}))(t)
		text = res.Content[0].(*sdk.TextContent).Text
		if res.IsError {
			t.Fatalf("%s: %s", tool, text)
		}
		return text
	}
	if text := call("recall", map[string]any{"question": "What grows in half shade?"}); !strings.Contains(text, "Hazel") {
		t.Errorf("recall: %s", text)
	}
	var made struct {
		ConversationID string `json:"conversation_id"`
	}
	check.NoError(t, json.Unmarshal([]byte(call("create_conversation", map[string]any{"title": "By an agent"})), &made))
	messages := []map[string]any{{"role": "user", "content": "Note this."}, {"role": "assistant", "content": strings.Repeat("The hazel is cut. ", 500)}, {"role": "user", "content": "Thanks."}}
	call("append_messages", map[string]any{"conversation_id": made.ConversationID, "parent_id": "root", "messages": messages})
	if err := session.Close(); err != nil {
		t.Errorf("the program ended: %v", err)
	}
	if out := mustRun(t, env, "show", "By an agent"); !strings.Contains(out, "Note this.") {
		t.Errorf("show: %s", out)
	}
}
