package prompttest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/tree"
)

// RealFiles gives the files that match below the folder with real exports,
// shared/data beside the repository.
func RealFiles(t testing.TB, pattern string) []string {
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

func (*bundles) AddAttachment(context.Context, string, []byte) (tree.Attachment, bool, error) {
	return tree.Attachment{}, true, nil
}

func (*bundles) Attachments(context.Context, ...[sha256.Size]byte) (map[[sha256.Size]byte]tree.Attachment, error) {
	return nil, nil
}

func (b *bundles) ImportID(_ context.Context, _ string, former uuid.UUID) (uuid.UUID, error) {
	return former, nil
}

func (b *bundles) Import(_ context.Context, more ...tree.Bundle) ([]tree.Imported, error) {
	*b = append(*b, more...)
	return make([]tree.Imported, len(more)), nil
}

// RealBranches gives the active branch of every conversation of a file.
func RealBranches(t testing.TB, file string) [][]tree.Message {
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

// RealPatterns are the files that hold conversations.
var RealPatterns = []string{
	"chatgpt/*.json", "librechat/*.json", "openwebui/*.json", "oasst/*.jsonl", "claude/osteele/*.json", "claude-code/*.jsonl", "pi/*.jsonl",
	"tau-bench/*.json", "swe-agent/*.traj",
}
