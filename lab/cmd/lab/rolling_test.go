package main

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
)

// TestRolling runs this version beside itself, and then the version before beside
// this one: the commit before the newest migration, where this repository's history
// has it.
func TestRolling(t *testing.T) {
	args := append([]string{"rolling", "--rounds", "4", "--clients", "2"}, siteArgs(t, dbtest.URL(t))...)
	program := args[len(args)-3]
	r := runLab(append(args, "--before", program)...)
	for _, want := range []string{"before is ready: true", "after is ready: true", "before starts again"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("it doesn't say %q", want)
		}
	}
	if r.code != 0 || t.Failed() {
		t.Fatalf("this version beside itself: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if testing.Short() {
		t.Skip("the version before is not built in a short run")
	}
	r = runLab(args...)
	if strings.Contains(r.stderr, "isn't in this repository's history") || strings.Contains(r.stderr, "go build: ") {
		t.Skipf("the version before is not here, or can't be built here: %s", r.stderr)
	}
	// The schema's version 14 is the last whose program doesn't know what serves it.
	for line := range strings.Lines(r.stdout) {
		cells := strings.Split(line, "|")
		if len(cells) > 5 && strings.TrimSpace(cells[1]) != "server" && !strings.HasPrefix(cells[1], "-") && strings.TrimSpace(cells[4]) != "0" {
			t.Errorf("%s", line)
		}
	}
	if !strings.Contains(r.stdout, "after is ready: true") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
