package summarize

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

const testNonce = "7f3a9c0d1e2b4a58"

// body makes a chat-completions message object of its members.
func testMessage(role tree.Role, members map[string]any) tree.Message {
	all := map[string]any{"role": role}
	for name, value := range members {
		all[name] = value
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return tree.Message{Role: role, Body: raw}
}

func userSays(text string) tree.Message {
	return testMessage(tree.RoleUser, map[string]any{"content": text})
}

func assistantSays(text string) tree.Message {
	return testMessage(tree.RoleAssistant, map[string]any{"content": text})
}

// assistantCalls makes a message with one call whose id is the tool's name.
func assistantCalls(tool, arguments string) tree.Message {
	return testMessage(tree.RoleAssistant, map[string]any{"content": nil, "tool_calls": []any{
		map[string]any{"id": tool, "type": "function", "function": map[string]any{"name": tool, "arguments": arguments}},
	}})
}

func toolSays(tool, text string) tree.Message {
	return testMessage(tree.RoleTool, map[string]any{"tool_call_id": tool, "content": text})
}

// golden compares got with a file of testdata. With UPDATE_GOLDEN=1 in the
// environment it writes the file instead.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run with UPDATE_GOLDEN=1 and look at the difference. Got:\n%s", file, got)
	}
}

func TestFenceNonce(t *testing.T) {
	t.Parallel()
	a, b := uuid.MustParse("0198f000-0000-7000-8000-000000000001"), uuid.MustParse("0198f000-0000-7000-8000-000000000002")
	first, again, other := fenceNonce(a), fenceNonce(a), fenceNonce(b)
	if len(first) != 16 || first != again || first == other {
		t.Errorf("nonces %q, %q and %q", first, again, other)
	}
}
