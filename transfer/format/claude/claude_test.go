package claude_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/transfer/formattest"
)

// Text of a Claude message beside blocks that hold none comes along, unless it
// only says that a block can't be shown.
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
