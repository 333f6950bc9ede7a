package summarize

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/tree"
)

// realFiles gives the files that match below the folder with real exports,
// shared/data beside the repository.
func realFiles(t testing.TB, pattern string) []string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "shared", "data", pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skipf("no real data: ../shared/data/%s beside the repository is absent", pattern)
	}
	return files
}

// bundles keeps what an import would store.
type bundles []tree.Bundle

func (b *bundles) ImportID(_ context.Context, _ string, former uuid.UUID) (uuid.UUID, error) {
	return former, nil
}

func (b *bundles) Import(_ context.Context, more ...tree.Bundle) ([]tree.Imported, error) {
	*b = append(*b, more...)
	return make([]tree.Imported, len(more)), nil
}

// realBranches gives the active branch of every conversation of a file.
func realBranches(t testing.TB, file string) [][]tree.Message {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var all bundles
	if _, err := transfer.Import(context.Background(), &all, in, transfer.Options{}); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var branches [][]tree.Message
	for _, b := range all {
		nodes := map[uuid.UUID]tree.BundleNode{}
		for _, n := range b.Nodes {
			nodes[n.ID] = n
		}
		var branch []tree.Message
		for id := b.HeadID; id != uuid.Nil; id = nodes[id].ParentID {
			var said struct{ Role tree.Role }
			if err := json.Unmarshal(nodes[id].Body, &said); err != nil {
				t.Fatal(err)
			}
			branch = append(branch, tree.Message{ID: id, Role: said.Role, Body: nodes[id].Body, Metadata: nodes[id].Metadata})
		}
		slices.Reverse(branch)
		branches = append(branches, branch)
	}
	return branches
}

var realPatterns = []string{
	"chatgpt/*.json", "librechat/*.json", "openwebui/*.json", "oasst/*.jsonl", "claude/osteele/*.json", "claude-code/*.jsonl", "pi/*.jsonl",
	"tau-bench/*.json", "swe-agent/*.traj",
}

// Real conversations, compacted again and again: every digest is sound and
// within its target, and what they make of the prompt comes apart as it was.
func TestDigestRealData(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	for _, pattern := range realPatterns {
		t.Run(strings.ReplaceAll(pattern, "/", " "), func(t *testing.T) {
			t.Parallel()
			for _, file := range realFiles(t, pattern) {
				if strings.Contains(file, "testdata-simple-invalid") {
					continue // holds no conversation
				}
				for _, branch := range realBranches(t, file) {
					checkRealBranch(t, branch, counter)
				}
			}
		})
	}
}

func checkRealBranch(t *testing.T, branch []tree.Message, counter tokens.Counter) {
	t.Helper()
	const fold, target = 30, 700
	in := Input{Nonce: testNonce, TargetTokens: target}
	for len(branch) > 0 {
		n := min(fold, len(branch))
		in.Fold, in.LookAhead = branch[:n], branch[n:min(n+4, len(branch))]
		p, err := parsePrompt(buildPrompt(in, fullLimits).messages(), testNonce)
		if err != nil || p.prior != in.Prior || len(p.fold) < len(in.Fold) {
			t.Errorf("the prompt of %d messages comes apart as %d, %v", len(in.Fold), len(p.fold), err)
		}
		got := digest(in, counter)
		checkDigest(t, in, got, counter)
		in.Prior, in.PriorTokens = got, counter.Count(got)
		branch = branch[n:]
	}
}

// A fold of a real session, much larger than a small summarizer's window.
func TestNextStepRealData(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	for _, file := range realFiles(t, "claude-code/long-*.jsonl") {
		branch := realBranches(t, file)[0]
		steps := allSteps(t, Input{Nonce: testNonce, TargetTokens: 1000, Fold: branch[:len(branch)-4], LookAhead: branch[len(branch)-4:]}, 8_000, 1_000, counter)
		if len(steps) < 3 {
			t.Errorf("%s: only %d steps", file, len(steps))
		}
	}
}

func BenchmarkDigestRealData(b *testing.B) {
	counter := tokens.O200k()
	for _, file := range []string{"pi/large-session.jsonl", "claude-code/long-1.jsonl"} {
		branch := realBranches(b, realFiles(b, file)[0])[0]
		for i := range branch {
			branch[i].Tokens = counter.Count(string(branch[i].Body))
		}
		b.Run(filepath.Base(file), func(b *testing.B) {
			for b.Loop() {
				digest(Input{Fold: branch, TargetTokens: 4000}, counter)
			}
		})
	}
}
