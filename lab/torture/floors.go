package torture

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// A Floor is how much of one thing a run must have checked at least. A run that
// checked less shows nothing, and has failed.
type Floor struct {
	Name string `json:"name"`
	Need int    `json:"need"`
	Got  int    `json:"got"`

	paused bool // checked in pauses
}

const histories = "histories for linearizability"

// floors are what a run must check: so much whatever its length, and so much
// more for each minute. A minute on a machine that does nothing else brings
// several times as much.
var floors = []struct {
	name      string
	least     int
	perMinute int
	paused    bool // checked in pauses
	got       func(r *Report) int
}{
	{"messages in answers to appends", 50, 200, false, func(r *Report) int { return r.Checks.Appended }},
	{"contexts", 30, 60, false, func(r *Report) int { return r.Checks.Contexts }},
	{"contexts with a summary", 8, 12, false, func(r *Report) int { return r.Checks.Summarized }},
	{"contexts with a summary that merged another", 2, 2, false, func(r *Report) int { return r.Checks.Merged }},
	{"summaries that are the ones that apply", 2, 3, true, func(r *Report) int { return r.Checks.Applicable }},
	{"pinned messages that are folded", 4, 6, false, func(r *Report) int { return r.Checks.Pins }},
	{"calls with their results in contexts", 10, 20, false, func(r *Report) int { return r.Checks.Calls }},
	{"contexts cut within a turn of tool calls", 1, 1, false, func(r *Report) int { return r.Checks.CutsInTurns }},
	{"calls without a result in contexts", 1, 2, false, func(r *Report) int { return r.Checks.Repairs }},
	{"prunes", 2, 4, false, func(r *Report) int { return r.Checks.Pruned }},
	{"prunes of roots", 1, 1, true, func(r *Report) int { return r.Checks.PrunedRoots }},
	{"prunes with nothing else under way", 2, 4, true, func(r *Report) int { return r.Checks.Exact }},
	{"summaries undone", 2, 2, true, func(r *Report) int { return r.Checks.Undone }},
	{"streams read once more after an event", 8, 20, false, func(r *Report) int { return r.Checks.Replays }},
	{"requests for what another tenant has", 40, 40, false, func(r *Report) int { return r.Checks.Foreign }},
	{"searches", 8, 12, false, func(r *Report) int { return r.Checks.Searches }},
	{"exports", 4, 6, true, func(r *Report) int { return r.Checks.Exports }},
	{"forks compared with their sources", 3, 4, true, func(r *Report) int { return r.Checks.Forks }},
	{"summaries in these forks", 1, 1, true, func(r *Report) int { return r.Checks.ForkedSums }},
	{"revoked keys", 2, 3, false, func(r *Report) int { return r.Checks.RevokedKeys }},
	{"keys that nobody made", 2, 3, false, func(r *Report) int { return r.Checks.UnknownKeys }},
	{"prompts of replies", 4, 10, false, func(r *Report) int { return r.Checks.Prompts }},
	{"turns over OpenAI's surface", 5, 15, true, func(r *Report) int { return r.Checks.Turns }},
	{"appends over MCP", 3, 6, false, func(r *Report) int { return r.Checks.MCP }},
	{"events of conversations", 20, 60, false, func(r *Report) int { return r.Checks.Events }},
	{"streams of them read on", 6, 12, false, func(r *Report) int { return r.Checks.ReadOn }},
	{"pages that show the tree", 2, 2, true, func(r *Report) int { return r.Checks.Pages }},
	{"events of tenants", 40, 120, false, func(r *Report) int { return r.Checks.TenantEvents }},
	{"streams of tenants read on", 6, 12, false, func(r *Report) int { return r.Checks.TenantReadOn }},
	{"lists kept by events", 3, 3, true, func(r *Report) int { return r.Checks.Feeds }},
	{"links read", 4, 8, false, func(r *Report) int { return r.Checks.Shares }},
	{"revoked links", 4, 8, false, func(r *Report) int { return r.Checks.Revoked }},
	{"attachments read back", 20, 40, false, func(r *Report) int { return r.Checks.Files }},
	{"exports with attachments", 2, 2, true, func(r *Report) int { return r.Checks.FileExports }},
	{histories, 1, 1, true, func(r *Report) int { return r.Histories.Checked }},
}

// missed gives the floors that a run doesn't reach yet.
func (r *Report) missed(cfg Config) (missed []Floor) {
	for _, f := range floors {
		need := f.least + int(float64(f.perMinute)*cfg.attacked().Minutes())
		if cfg.Histories == 0 && f.name == histories {
			need = 0
		}
		if got := f.got(r); got < need {
			missed = append(missed, Floor{f.name, need, got, f.paused})
		}
	}
	return missed
}

// overtimeBound is how long a run may go on after its faults until it has
// checked enough, because the machine is slow or does other things.
const overtimeBound = 5 * time.Minute

// overtime lets the writers go on, without faults, until enough was checked. It
// holds them only for checks that can't be made otherwise.
func (r *run) overtime(ctx context.Context) error {
	for deadline := time.Now().Add(overtimeBound); time.Now().Before(deadline); {
		missed := r.missed()
		if len(missed) == 0 {
			return nil
		}
		r.cfg.Logger.Info("goes on, as it checked too little", "missed", missed)
		r.sleep(ctx, min(2*time.Second, r.cfg.CheckEvery))
		if slices.ContainsFunc(missed, func(f Floor) bool { return f.paused }) {
			if err := r.pause(ctx, false); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func (r *run) missed() []Floor {
	report := r.report.finish()
	return report.missed(r.cfg)
}

func printFloors(w io.Writer, missed []Floor) {
	for _, f := range missed {
		fmt.Fprintf(w, "too little was checked: %s: %d, and at least %d are needed\n", f.Name, f.Got, f.Need)
	}
}
