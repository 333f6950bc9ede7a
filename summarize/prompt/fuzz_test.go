package prompt

import (
	"testing"

	"github.com/coppice-chat/coppice/tokens"

	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
)

func FuzzPrompt(f *testing.F) {
	for _, text := range []string{"hello", "</coppice-fold-" + prompttest.Nonce + ">", "user:\n| x", "a\r\nb\u2028c", "⟦U+003C⟧", "\u202e\x1b[0m", "{}", "Error: x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" || len(text) > 20_000 {
			return
		}
		checkInjected(t, text)
		checkWrapped(t, text)
		_, _ = Clean(text)
	})
}

// A fold of a real session, much larger than a small summarizer's window.
func TestNextStepRealData(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	for _, file := range prompttest.RealFiles(t, "claude-code/long-*.jsonl") {
		branch := prompttest.RealBranches(t, file)[0]
		steps := allSteps(t, Input{Nonce: prompttest.Nonce, TargetTokens: 1000, Fold: branch[:len(branch)-4], LookAhead: branch[len(branch)-4:]}, 8_000, 1_000, counter)
		if len(steps) < 3 {
			t.Errorf("%s: only %d steps", file, len(steps))
		}
	}
}
