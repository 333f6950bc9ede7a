package claude_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

// Text beside blocks comes along, unless it only says that a block can't be shown.
func TestClaudeTextBesideCalls(t *testing.T) {
	t.Parallel()
	message := func(text string) string {
		return `[{"uuid":"c","name":"T","chat_messages":[{"uuid":"m","sender":"assistant","text":"` + text + `","content":[{"type":"tool_use","id":"i","name":"f","input":{}}]}]}]`
	}
	report, all := formattest.Read(t, strings.NewReader(message("Let me look.")), "")
	formattest.Same(t, "tree", formattest.Outline(all[0]), `*assistant: Let me look. [i f{}]`)
	formattest.Same(t, "notes", formattest.Notes(report), "repaired content (T) m: no block of content holds text; the member text came along")
	report, all = formattest.Read(t, strings.NewReader(message("```\\nThis block is not supported on your current device yet.\\n```")), "")
	formattest.Same(t, "tree", formattest.Outline(all[0]), `*assistant: [i f{}]`)
	formattest.Same(t, "notes", formattest.Notes(report), "left out content (T) m: text, which only says that a block can't be shown")
}

// Results that name no call have to be looked through for an open one each: a message of
// thousands is left out, and the one behind it comes in.
func TestClaudeResultsWithoutCalls(t *testing.T) {
	t.Parallel()
	chat := func(id, content string) string {
		return `{"uuid":"` + id + `","name":"` + id + `","chat_messages":[{"uuid":"m","sender":"assistant","content":[` + content + `]}]}`
	}
	in := chat("many", `{"type":"tool_result"}`+strings.Repeat(`,{"type":"tool_result"}`, 5000)) + chat("few", `{"type":"tool_use","name":"f"},{"type":"tool_result","content":"a"}`)
	report, err := transfer.Import(t.Context(), nil, strings.NewReader(in), transfer.Options{DryRun: true})
	check.That(t, err == nil && report.Conversations == 1, "%d conversations, %v", report.Conversations, err)
	if notes := formattest.Notes(report); !strings.HasPrefix(notes, "left out too large (many) : for its 115116 bytes it has too much that has to be looked through") {
		t.Error(notes)
	}
}
