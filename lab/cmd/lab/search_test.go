package main

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
)

// The command loads a database of its own, measures, and drops it.
func TestSearch(t *testing.T) {
	url := dbtest.URL(t)
	args := append([]string{"search", "--messages", "1000", "--tenants", "2", "--rounds", "2"}, siteArgs(t, url)...)
	out := mustRun(t, args...)
	for _, want := range []string{"1,000 messages of 2 tenants", "| tenant, newest, common", "times the bodies"} {
		if !strings.Contains(out, want) {
			t.Errorf("it printed\n%s\nwithout %q", out, want)
		}
	}
	benchLeavesNothing(t, url)
	if r := runLab(append([]string{"search", "--messages", "7"}, siteArgs(t, url)...)...); r.code != exitFailed || !strings.Contains(r.stderr, "at least 100 messages") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
}
