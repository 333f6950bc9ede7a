package transfer_test

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/formattest"
	"github.com/coppice-chat/coppice/tree"
)

// The store takes all that is read of each of these files, and a second time
// adds nothing.
func TestAgentsTwice(t *testing.T) {
	t.Parallel()
	root := filepath.Dir(formattest.Shared(t, "README.md").Name())
	all := tree.New(dbtest.New(t))
	for _, files := range []string{"claude-code/*.jsonl", "pi/*.jsonl", "tau-bench/*.json", "swe-agent/*.traj"} {
		names, err := filepath.Glob(filepath.Join(root, files))
		if err != nil || len(names) == 0 {
			t.Errorf("%s: %d files, %v", files, len(names), err)
		}
		for _, name := range names {
			f := formattest.Shared(t, filepath.Join(filepath.Dir(files), filepath.Base(name)))
			// Each a tenant's own: the sessions of the dag_ files have one id.
			store, opts := all.ForTenant(filepath.Base(name)), transfer.Options{TenantID: filepath.Base(name)}
			first, err := transfer.Import(t.Context(), store, f, opts)
			if err != nil || first.Added == 0 || first.Added != first.Messages || first.Present != 0 {
				t.Errorf("%s: added %d and found %d of %d, %v", name, first.Added, first.Present, first.Messages, err)
			}
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			second, err := transfer.Import(t.Context(), store, f, opts)
			if err != nil || second.Added != 0 || second.Present != first.Added {
				t.Errorf("%s: the second time added %d and found %d of %d, %v", name, second.Added, second.Present, first.Added, err)
			}
		}
	}
}
