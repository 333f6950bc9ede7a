package digest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// Real conversations, compacted again and again: every digest is sound and
// within its target, and what they make of the prompt comes apart as it was.
func TestDigestRealData(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	for _, pattern := range prompttest.RealPatterns {
		t.Run(strings.ReplaceAll(pattern, "/", " "), func(t *testing.T) {
			t.Parallel()
			for _, file := range prompttest.RealFiles(t, pattern) {
				if strings.Contains(file, "testdata-simple-invalid") {
					continue // holds no conversation
				}
				for _, branch := range prompttest.RealBranches(t, file) {
					checkRealBranch(t, branch, counter)
				}
			}
		})
	}
}

func checkRealBranch(t *testing.T, branch []tree.Message, counter tokens.Counter) {
	t.Helper()
	const fold, target = 30, 700
	in := prompt.Input{Nonce: prompttest.Nonce, TargetTokens: target}
	for len(branch) > 0 {
		n := min(fold, len(branch))
		in.Fold, in.LookAhead = branch[:n], branch[n:min(n+4, len(branch))]
		step, _, err := prompt.Next(in, 1<<30, counter)
		if err != nil {
			t.Fatal(err)
		}
		p, err := prompttest.Parse(step.Messages(), prompttest.Nonce)
		if err != nil || p.Prior != in.Prior || len(p.Fold) < len(in.Fold) {
			t.Errorf("the prompt of %d messages comes apart as %d, %v", len(in.Fold), len(p.Fold), err)
		}
		got := extract(in, counter)
		checkDigest(t, in, got, counter)
		in.Prior, in.PriorTokens = got, counter.Count(got)
		branch = branch[n:]
	}
}

func BenchmarkDigestRealData(b *testing.B) {
	counter := tokens.O200k()
	for _, file := range []string{"pi/large-session.jsonl", "claude-code/long-1.jsonl"} {
		branch := prompttest.RealBranches(b, prompttest.RealFiles(b, file)[0])[0]
		for i := range branch {
			branch[i].Tokens = counter.Count(string(branch[i].Body))
		}
		b.Run(filepath.Base(file), func(b *testing.B) {
			for b.Loop() {
				extract(prompt.Input{Fold: branch, TargetTokens: 4000}, counter)
			}
		})
	}
}
