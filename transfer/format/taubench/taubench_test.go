package taubench_test

import (
	"testing"

	"github.com/coppice-chat/coppice/transfer/formattest"
)

// 50 tasks of 4 trials; the numbers are those of tries over their messages.
func TestTauBenchFile(t *testing.T) {
	t.Parallel()
	report, all := formattest.Read(t, formattest.Shared(t, "tau-bench/gpt-4o-airline.json"), "")
	formattest.Same(t, "counts", formattest.Count(report), "tau-bench: 50 conversations, 5144 messages, 56 branch points, 200 leaves")
	for _, b := range all {
		roots := 0
		for _, n := range b.Nodes {
			if n.ParentID == [16]byte{} {
				roots++
			}
		}
		if roots != 1 {
			t.Errorf("%q has %d roots", b.Conversation.Title, roots)
		}
	}
}
