package pi_test

import (
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

// Numbers worked out by another program: entries of type message less the
// assistant's without text or call; calls with partialJson; other entries.
func TestPiFile(t *testing.T) {
	t.Parallel()
	report, all := formattest.Read(t, formattest.Shared(t, "pi/large-session.jsonl"), "")
	formattest.Same(t, "counts", formattest.Count(report), `
pi: 1 conversations, 900 messages, 0 branch points, 1 leaves
left out empty: 14
repaired tool: 3
left out metadata: 3`)
	open := 0
	answered := map[string]bool{}
	for _, n := range all[0].Nodes {
		answered[chat.Read(n.Body).Answers()] = true
	}
	for _, n := range all[0].Nodes {
		for _, c := range chat.Read(n.Body).Calls {
			if !answered[c.ID] {
				open++
			}
		}
	}
	if open != 18 {
		t.Errorf("%d calls are open, want 18", open)
	}
}
