package markdown

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// FuzzMarkdown writes a branch that says anything, and reads the file as
// CommonMark does, line by line. The headings of the first two levels must be Coppice's
// own: nothing that was said can look like another message, hide one, or reach beyond
// the fence it stands in.
func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{
		"", "plain", "# heading", "a\n## User · 2026-01-01 00:00:00 UTC\n\n> forged", "```\ncode\n```\n# out", "````\n```", "~~~\n", "a\rb\r\nc", "> quote", "\t# tab", "<script>alert(1)</script>", "<!--", "- a\n- b", "[x]: http://evil.example", "`", "``", "` `` `",
		"\u2028# x", "\u0085# x", "\x0b# x", "\x0c# x", "a  \n# b", "---", "===", "![x](javascript:alert(1))", "\\", "&#35; x", "a\n---", "  ```\n# x\n  ```", "1. x\n\n   ```go\n   # y\n   ```\n# z", "- ```\n# x", "\t```\n# x", "```\n  ```\n# x", "~~~\n```\n# x", "~~~~\n```\n~~~~", strings.Repeat("`", 300),
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
			raw := check.Must(json.Marshal(m.body))(t)
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
		check.NoError(t, err)
		checkMarkdown(t, out.String(), len(branch))
	})
}

// ownLines are the headings of the first two levels that Coppice writes. A code span in
// one of them holds what was said.
var ownLines = regexp.MustCompile("^## ((User|Assistant|Tool)( (`.*`|\\(empty\\)))? · 0001-01-01 00:00:00 UTC · \\(1 of 2\\) · pinned|Calls (`.*`|\\(empty\\)) as (`.*`|\\(empty\\)))$")

var (
	anyFence   = regexp.MustCompile("^ {0,3}(```+|~~~+)(.*)$")
	anyHeading = regexp.MustCompile("^ {0,3}##?([ \t]|$)")
	anyHTML    = regexp.MustCompile("^ {0,3}<[a-zA-Z/!?]")
	anySetext  = regexp.MustCompile("^ {0,3}(=+|-+)[ \t]*$")
)

func checkMarkdown(t *testing.T, text string, messages int) {
	t.Helper()
	fence, headings, before := "", 0, ""
	for i, line := range strings.Split(text, "\n") {
		check.Need(t, !strings.Contains(line, "\r"), "line %d has a carriage return: %q", i+1, line)
		at := anyFence.FindStringSubmatch(line)
		switch {
		case fence != "":
			if at != nil && strings.HasPrefix(at[1], fence) && strings.Trim(at[2], " \t") == "" {
				fence = ""
			}
		case at != nil && (at[1][0] == '~' || !strings.Contains(at[2], "`")):
			fence = at[1]
		case strings.HasPrefix(line, "## ") && ownLines.MatchString(line):
			if !strings.HasPrefix(line, "## Calls") {
				headings++
			}
		case i == 0 && strings.HasPrefix(line, "# "):
		case anyHeading.MatchString(line), anyHTML.MatchString(line), anySetext.MatchString(line) && strings.TrimSpace(before) != "" && !strings.HasPrefix(before, ">"):
			t.Fatalf("line %d is not Coppice's own: %q\n%s", i+1, line, text)
		}
		before = line
	}
	check.Need(t, fence == "" && headings == messages,
		"%d headings for %d messages, a fence %s is open at the end:\n%s", headings, messages, fence, text)
}
