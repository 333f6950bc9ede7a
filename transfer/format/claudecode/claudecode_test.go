package claudecode_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

// claudeCodeLines writes lines from {uuid, parent, what it says}: a text, or
// for an assistant "calls a b", or for a user "answers a".
func claudeCodeLines(lines ...[3]string) string {
	var out strings.Builder
	for _, l := range lines {
		message := map[string]any{"role": "user", "content": l[2]}
		kind := "user"
		if calls, ok := strings.CutPrefix(l[2], "calls "); ok {
			id, call, _ := strings.Cut(calls, " ")
			kind = "assistant"
			message = map[string]any{"role": kind, "id": id, "content": []any{map[string]any{"type": "tool_use", "id": call, "name": "f", "input": map[string]any{}}}}
		}
		if call, ok := strings.CutPrefix(l[2], "answers "); ok {
			message["content"] = []any{map[string]any{"type": "tool_result", "tool_use_id": call, "content": "result of " + call}}
		}
		out.Write(chat.MustMarshal(map[string]any{"type": kind, "uuid": l[0], "parentUuid": l[1], "sessionId": "s", "message": message}))
		out.WriteString("\n")
	}
	return out.String()
}

func TestClaudeCodeResults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lines [][3]string
		want  string
	}{
		"parallel calls make no branch": {
			[][3]string{{"u", "", "go"}, {"a1", "u", "calls m c1"}, {"a2", "a1", "calls m c2"}, {"r1", "a1", "answers c1"}, {"r2", "a2", "answers c2"}, {"v", "r1", "on"}},
			"user: go\nassistant: [c1 f{}] [c2 f{}]\ntool c1: result of c1\ntool c2: result of c2\n*user: on",
		},
		"a result between the lines of a message": {
			[][3]string{{"u", "", "go"}, {"a1", "u", "calls m c1"}, {"r1", "a1", "answers c1"}, {"a2", "r1", "calls m c2"}, {"r2", "a2", "answers c2"}},
			"user: go\nassistant: [c1 f{}] [c2 f{}]\ntool c1: result of c1\n*tool c2: result of c2",
		},
		"a message between results follows them": {
			[][3]string{{"a1", "", "calls m c1"}, {"a2", "a1", "calls m c2"}, {"r1", "a2", "answers c1"}, {"v", "r1", "wait"}, {"r2", "v", "answers c2"}},
			"assistant: [c1 f{}] [c2 f{}]\ntool c1: result of c1\ntool c2: result of c2\n*user: wait",
		},
		"calls that ran again branch": {
			[][3]string{{"a1", "", "calls m c1"}, {"a2", "a1", "calls m c2"}, {"r1", "a2", "answers c1"}, {"v", "r1", "first"}, {"r1b", "a2", "answers c1"}, {"r2b", "r1b", "answers c2"}, {"w", "r2b", "second"}},
			"assistant: [c1 f{}] [c2 f{}]\n  tool c1: result of c1\n  user: first\n  tool c1: result of c1\n  tool c2: result of c2\n  *user: second",
		},
		"a call that was never answered stays open": {
			[][3]string{{"a1", "", "calls m c1"}, {"v", "a1", "stop"}},
			"assistant: [c1 f{}]\n*user: stop",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, all := formattest.Read(t, strings.NewReader(claudeCodeLines(test.lines...)), "claude-code")
			formattest.Same(t, "tree", formattest.Outline(all[0]), test.want)
		})
	}
}

// Over any tangle of lines: all can be stored, and what was said is there once.
func TestClaudeCodeTangles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 14).Draw(t, "lines")
		one := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
		var file strings.Builder
		var said []string
		for i := range n {
			parent := ""
			if p := rapid.IntRange(-2, n-1).Draw(t, "parent"); p == -2 {
				parent = "elsewhere"
			} else if p >= 0 {
				parent = fmt.Sprint("n", p)
			}
			text := fmt.Sprintf("said-%d.", i)
			kind, message := one("kind", "user", "assistant", "assistant", "progress"), map[string]any{}
			switch {
			case kind == "assistant" && rapid.Bool().Draw(t, "calls"):
				message = map[string]any{"id": one("message", "m1", "m2", "m3"), "content": []any{map[string]any{"type": "tool_use", "id": one("call", "c1", "c2", "c3"), "name": "f"}}}
			case kind == "assistant":
				message = map[string]any{"id": one("message", "m1", "m2", "m3"), "content": []any{map[string]any{"type": "text", "text": text}}}
				said = append(said, text)
			case kind == "user" && rapid.Bool().Draw(t, "answers"):
				message["content"] = []any{map[string]any{"type": "tool_result", "tool_use_id": one("call", "c1", "c2", "c3"), "content": text}}
				said = append(said, text)
			case kind == "user":
				message["content"] = text
				said = append(said, text)
			}
			file.Write(chat.MustMarshal(map[string]any{
				"type": kind, "uuid": fmt.Sprint("n", i), "parentUuid": parent, "sessionId": one("session", "s1", "s2"),
				"isSidechain": rapid.Bool().Draw(t, "sidechain"), "message": message,
			}))
			file.WriteString("\n")
		}
		var b formattest.Bundles
		if _, err := transfer.Import(context.Background(), &b, strings.NewReader(file.String()), transfer.Options{Format: "claude-code"}); err != nil && len(said) > 0 {
			t.Fatal(err)
		}
		var bodies strings.Builder
		for _, one := range b {
			if err := formattest.CheckBundle(one); err != nil {
				t.Fatalf("%v\n%s\n%s", err, formattest.Outline(one), &file)
			}
			for _, n := range one.Nodes {
				bodies.Write(n.Body)
			}
		}
		for _, text := range said {
			got := strings.Count(bodies.String(), `"`+text+`"`)
			check.Need(t, got == 1, "%s stands %d times in what was read of\n%s", text, got, &file)
		}
	})
}
