package digest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
)

// Digests of chats in six languages, to be read. docs/summaries.md shows some.
func TestDigestChats(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	files, err := filepath.Glob("testdata/chats/*.txt")
	if err != nil || len(files) != 6 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		in := prompt.Input{}
		sum := 0
		for said := range strings.SplitSeq("\n"+strings.TrimSpace(string(text)), "\nuser: ") {
			for i, part := range strings.Split(said, "\nassistant: ") {
				if part == "" {
					continue
				}
				m := prompttest.UserSays(part)
				if i > 0 {
					m = prompttest.AssistantSays(part)
				}
				m.Tokens = counter.Count(part)
				sum += m.Tokens
				in.Fold = append(in.Fold, m)
			}
		}
		in.TargetTokens = sum / 2
		got := extract(in, counter)
		checkDigest(t, in, got, counter)
		prompttest.Golden(t, "chats/"+strings.TrimSuffix(filepath.Base(file), ".txt")+".golden", got+"\n")
	}
}
