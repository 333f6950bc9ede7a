package main

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
)

// The command reads a dataset, measures in a database of its own, and drops that.
func TestMemory(t *testing.T) {
	url := dbtest.URL(t)
	args := append([]string{"memory", "../../memory/testdata/locomo.json"}, siteArgs(t, url)...)
	if out := mustRun(t, args...); !strings.Contains(out, "| all        |         3 |  0.667 |      0.667 |") || !strings.Contains(out, "| digest ") {
		t.Errorf("it printed\n%s", out)
	}
	if out := mustRun(t, "memory", "--summaries", "../../memory/testdata/locomo.json"); !strings.Contains(out, "| digest in three folds |") || strings.Contains(out, "hit@10") {
		t.Errorf("it printed\n%s", out)
	}
	if out := mustRun(t, append(args, "--speed", "50")...); !strings.Contains(out, "| 50 messages") {
		t.Errorf("it printed\n%s", out)
	}
	benchLeavesNothing(t, url)
	if r := runLab("memory", "absent.json"); r.code != exitFailed || !strings.Contains(r.stderr, "absent.json") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
}
