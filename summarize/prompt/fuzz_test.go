package prompt

import (
	"testing"

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
