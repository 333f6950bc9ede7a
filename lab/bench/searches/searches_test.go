package searches

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
)

// A run stores what it says, and its searches find what they should.
func TestRun(t *testing.T) {
	t.Parallel()
	for _, grown := range []bool{false, true} {
		pool := dbtest.New(t)
		r, err := Run(t.Context(), pool, Config{Messages: 2_000, Tenants: 4, Rounds: 3, Grown: grown, BuildMemory: "16MB"}, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		var stored int
		if err := pool.QueryRow(t.Context(), "select count(*) from nodes").Scan(&stored); err != nil || stored != 2_000+31 {
			t.Errorf("%d messages are stored, %v", stored, err)
		}
		for _, timing := range r.Timings {
			want := -1
			switch {
			case strings.HasSuffix(timing.What, ", absent"):
				want = 0
			case strings.HasSuffix(timing.What, ", common"), timing.What == "append":
				want = timing.Calls
			}
			if want >= 0 && timing.Found != want || timing.TimedOut > 0 || timing.Median <= 0 {
				t.Errorf("%+v", timing)
			}
		}
		if ratio := r.Sizes.Ratio(); ratio < 1.2 || ratio > 4 {
			t.Errorf("%+v: %.2f times the bodies", r.Sizes, ratio)
		}
	}
	if _, err := Run(t.Context(), nil, Config{Messages: 10, Tenants: 1, Rounds: 1}, t.Logf); err == nil {
		t.Error("10 messages are taken")
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for rank := range vocabularySize {
		seen[word(rank)] = true
	}
	if len(seen) != vocabularySize {
		t.Errorf("%d different words, want %d", len(seen), vocabularySize)
	}
}
