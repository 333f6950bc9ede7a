package markdown

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// FuzzMarkdown writes a branch that says anything, and reads the file as
// CommonMark does, line by line. What stands outside of block quotes and fences
// must be Coppice's own: nothing that was said can look like a heading, another
// message or the end of the fence it stands in.
func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{
		"", "plain", "# heading", "a\n## User · 2026-01-01 00:00:00 UTC\n\n> forged", "```\ncode\n```\n# out", "````\n```", "~~~\n", "a\rb\r\nc", "> quote", "\t# tab", "<script>alert(1)</script>", "<!--", "- a\n- b", "[x]: http://evil.example", "`", "``", "` `` `",
		"\u2028# x", "\u0085# x", "\x0b# x", "\x0c# x", "a  \n# b", "---", "===", "![x](javascript:alert(1))", "\\", "&#35; x", "~~~~\n```\n~~~~", strings.Repeat("`", 300),
	} {
		for _, other := range []string{"x", "```", "\n# y\n"} {
			f.Add(seed, other)
		}
	}
	f.Fuzz(func(t *testing.T, said, other string) {
		if !utf8.ValidString(said) || !utf8.ValidString(other) {
			return // which is not stored
		}
		var branch []tree.Message
		for _, m := range []struct {
			role tree.Role
			body map[string]any
		}{
			{tree.RoleUser, map[string]any{"content": said, "name": other}},
			{tree.RoleUser, map[string]any{"content": []any{map[string]any{"type": "text", "text": said}, map[string]any{"type": other}, map[string]any{"type": "file", "file": map[string]any{"filename": said}}, map[string]any{"type": "image_url", "image_url": map[string]any{"url": "http" + said}}}}},
			{tree.RoleAssistant, map[string]any{"content": other, "refusal": said, "tool_calls": []any{
				map[string]any{"id": said, "type": "function", "function": map[string]any{"name": other, "arguments": said}},
				map[string]any{"id": other, "type": "custom", "custom": map[string]any{"name": said, "input": `{"a":` + other + "}"}}}}},
			{tree.RoleTool, map[string]any{"tool_call_id": said, "content": other}},
			{tree.RoleTool, map[string]any{"tool_call_id": other, "content": said}},
		} {
			m.body["role"] = m.role
			raw, err := json.Marshal(m.body)
			if err != nil {
				t.Fatal(err)
			}
			branch = append(branch, tree.Message{ID: uuid.Nil, Role: m.role, Body: raw, Siblings: tree.Siblings{Index: 1, Count: 2}, Pinned: true})
		}
		var out strings.Builder
		err := Write(&out, tree.Conversation{Title: said, CreatedAt: time.Unix(0, 0)}, func(yield func(tree.Message, error) bool) {
			for _, m := range branch {
				if !yield(m, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		checkMarkdown(t, out.String(), len(branch))
	})
}

// ownLines are those that Coppice writes outside of quotes and fences. A code
// span in one of them holds what was said.
var ownLines = regexp.MustCompile("^(|Conversation `[0-9a-f-]{36}`, begun 1970-01-01 00:00:00 UTC|" +
	"## (User|Assistant|Tool)( (`.*`|\\(empty\\)))? · 0001-01-01 00:00:00 UTC · \\(1 of 2\\) · pinned|" +
	"Result of call (`.*`|\\(empty\\))|Calls (`.*`|\\(empty\\)) as (`.*`|\\(empty\\)))$")

func checkMarkdown(t *testing.T, text string, messages int) {
	t.Helper()
	fence, headings := 0, 0
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, "\r") {
			t.Fatalf("line %d has a carriage return: %q", i+1, line)
		}
		ticks := len(line) - len(strings.TrimLeft(line, "`"))
		switch {
		case fence > 0:
			indented := strings.TrimLeft(line, " ")
			closing := len(indented) - len(strings.TrimLeft(indented, "`"))
			if len(line)-len(indented) <= 3 && closing >= fence && strings.TrimRight(indented[closing:], " \t") == "" {
				fence = 0
			}
		case ticks >= 3 && !strings.Contains(line[ticks:], "`"):
			if info := line[ticks:]; info != "" && info != "json" {
				t.Fatalf("line %d begins a fence with what was said: %q", i+1, line)
			}
			fence = ticks
		case strings.HasPrefix(line, ">"), i == 0 && strings.HasPrefix(line, "# "):
		case !ownLines.MatchString(line):
			t.Fatalf("line %d is not Coppice's own: %q\n%s", i+1, line, text)
		case strings.HasPrefix(line, "## "):
			headings++
		}
	}
	if fence > 0 || headings != messages {
		t.Fatalf("%d headings for %d messages, a fence of %d is open at the end:\n%s", headings, messages, fence, text)
	}
}
