package transfer

import (
	"encoding/json"
	"io"
	"path/filepath"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// Numbers worked out by another program: entries of type message less the
// assistant's without text or call; calls with partialJson; other entries.
func TestPiFile(t *testing.T) {
	t.Parallel()
	report, all := read(t, sharedFile(t, "pi/large-session.jsonl"), "")
	same(t, "counts", count(report), `
pi: 1 conversations, 900 messages, 0 branch points, 1 leaves
left out empty: 14
repaired tool: 3
left out metadata: 3`)
	open := 0
	answered := map[string]bool{}
	for _, n := range all[0].Nodes {
		answered[bodyOf(t, n).ToolCallID] = true
	}
	for _, n := range all[0].Nodes {
		for _, c := range bodyOf(t, n).ToolCalls {
			if !answered[c.ID] {
				open++
			}
		}
	}
	if open != 18 {
		t.Errorf("%d calls are open, want 18", open)
	}
}

// 50 tasks of 4 trials; the numbers are those of tries over their messages.
func TestTauBenchFile(t *testing.T) {
	t.Parallel()
	report, all := read(t, sharedFile(t, "tau-bench/gpt-4o-airline.json"), "")
	same(t, "counts", count(report), "tau-bench: 50 conversations, 5144 messages, 56 branch points, 200 leaves")
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

// Lengths of the histories, and steps whose response is not in the history.
func TestSWEAgentFiles(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ messages, unsaid int }{
		"ctf--crypto--BabyEncryption":  {31, 1},
		"ctf--crypto--BabyTimeCapsule": {19, 0},
		"ctf--crypto--eps":             {29, 0},
		"ctf--crypto--katy":            {37, 1},
		"ctf--forensics--flash":        {9, 0},
		"ctf--misc--networking_1":      {9, 0},
		"ctf--pwn--warmup":             {15, 0},
		"ctf--rev--rock":               {25, 0},
		"ctf--web--i_got_id_demo":      {43, 1},
		"function_calling_simple":      {12, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, _ := read(t, sharedFile(t, "swe-agent/"+name+".traj"), "")
			unsaid := 0
			for _, n := range report.Notes {
				if n.Kind == KindContent {
					unsaid++
				}
			}
			if report.Format != "swe-agent" || report.Messages != want.messages || report.Leaves != 1 || unsaid != want.unsaid {
				t.Errorf("%s and %d responses left out, want %d messages and %d", count(report), unsaid, want.messages, want.unsaid)
			}
		})
	}
}

func bodyOf(t *testing.T, n tree.BundleNode) (body markdownBody) {
	t.Helper()
	if err := json.Unmarshal(n.Body, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

// The store takes all that is read of each of these files, and a second time
// adds nothing.
func TestAgentsTwice(t *testing.T) {
	t.Parallel()
	root := filepath.Dir(sharedFile(t, "README.md").Name())
	all := tree.New(dbtest.New(t))
	for _, files := range []string{"claude-code/*.jsonl", "pi/*.jsonl", "tau-bench/*.json", "swe-agent/*.traj"} {
		names, err := filepath.Glob(filepath.Join(root, files))
		if err != nil || len(names) == 0 {
			t.Errorf("%s: %d files, %v", files, len(names), err)
		}
		for _, name := range names {
			f := sharedFile(t, filepath.Join(filepath.Dir(files), filepath.Base(name)))
			// Each a tenant's own: the sessions of the dag_ files have one id.
			store, opts := all.ForTenant(filepath.Base(name)), Options{TenantID: filepath.Base(name)}
			first, err := Import(t.Context(), store, f, opts)
			if err != nil || first.Added == 0 || first.Added != first.Messages || first.Present != 0 {
				t.Errorf("%s: added %d and found %d of %d, %v", name, first.Added, first.Present, first.Messages, err)
			}
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			second, err := Import(t.Context(), store, f, opts)
			if err != nil || second.Added != 0 || second.Present != first.Added {
				t.Errorf("%s: the second time added %d and found %d of %d, %v", name, second.Added, second.Present, first.Added, err)
			}
		}
	}
}
