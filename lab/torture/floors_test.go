package torture

import (
	"log/slog"
	"testing"
	"time"
)

func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// A run that checked nothing reached no floor, and has failed; the longer it
// is, the higher they are.
func TestMissedFloors(t *testing.T) {
	t.Parallel()
	var nothing Report
	if missed := nothing.missed(runFor(0)); len(missed) != len(floors) {
		t.Errorf("a run of nothing missed %d of %d floors", len(missed), len(floors))
	}
	var r Report
	r.Checks = Checks{
		Contexts: 500, Summarized: 500, Prompts: 500, Merged: 500, Pins: 500, Calls: 500, CutsInTurns: 500, Repairs: 500, Appended: 500, Pruned: 500,
		PrunedRoots: 500, Undone: 500, Exact: 500, Replays: 500, Foreign: 500, Searches: 500, Exports: 500, Forks: 500, ForkedSums: 500,
		RevokedKeys: 500, UnknownKeys: 500, Applicable: 500, Turns: 500, MCP: 500,
		Events: 500, ReadOn: 500, Pages: 500, TenantEvents: 500, TenantReadOn: 500, Feeds: 500, Shares: 500, Revoked: 500, Files: 500, FileExports: 500,
	}
	r.Histories.Checked = 500
	if missed := r.missed(runFor(time.Minute)); len(missed) != 0 {
		t.Errorf("missed %+v", missed)
	}
	if missed := r.missed(runFor(time.Hour)); len(missed) == 0 {
		t.Error("what does for a minute does for an hour")
	}
	r.Checks.Merged = 3
	missed := r.missed(runFor(time.Minute))
	if len(missed) != 1 || missed[0] != (Floor{Name: "contexts with a summary that merged another", Need: 4, Got: 3}) {
		t.Errorf("missed %+v", missed)
	}
	if r.Missed = missed; !r.Failed() {
		t.Error("a run that missed a floor has not failed")
	}
}

func runFor(d time.Duration) Config {
	cfg := Defaults()
	cfg.Duration = d
	return cfg
}

// A run without histories needs none.
func TestFloorsWithoutHistories(t *testing.T) {
	t.Parallel()
	cfg := runFor(time.Minute)
	cfg.Histories = 0
	if missed, with := new(Report).missed(cfg), new(Report).missed(runFor(time.Minute)); len(missed) != len(with)-1 {
		t.Errorf("%d floors instead of %d", len(missed), len(with))
	}
}
