package server

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/fault"
)

// TestEveryCodeIsDocumented reads which codes the packages below give from their
// source, and holds that openapi.yaml has those and the server's own, once in
// the list and once in the table, with their status, and no other.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	given := codesBelow(t)
	for code, kind := range kinds {
		given[string(code)] = append(given[string(code)], answers[kind].status)
	}
	row := regexp.MustCompile("(?m)^ +\\| `([a-z0-9_]+)` \\| (\\d+) \\| .+ \\|$")
	table := map[string]int{}
	for _, m := range row.FindAllSubmatch(Spec, -1) {
		table[string(m[1])], _ = strconv.Atoi(string(m[2]))
	}
	for code, statuses := range given {
		if !Code(code).Valid() {
			t.Errorf("openapi.yaml doesn't list %s", code)
		}
		if !slices.Contains(statuses, table[code]) {
			t.Errorf("openapi.yaml's table says %d of %s, and it is %v", table[code], code, statuses)
		}
	}
	for code := range table {
		if given[code] == nil {
			t.Errorf("openapi.yaml's table has %s, which nothing gives", code)
		}
	}
	if n := bytes.Count(Spec[bytes.LastIndex(Spec, []byte("      enum:\n")):], []byte("\n        - ")); n != len(table) {
		t.Errorf("openapi.yaml lists %d codes, and its table has %d", n, len(table))
	}
}

// codesBelow finds the codes that packages give and that can reach a client, with
// the statuses of their kinds: wherever a kind stands before a code.
func codesBelow(t *testing.T) map[string][]int {
	t.Helper()
	// What AddSummary and Import refuse, which have no route, fields that the server
	// checks before, and what PruneLeaf refuses, which no native route calls.
	unreachable := []string{"has_children", "invalid_cutoff", "invalid_summary", "missing_id", "missing_model", "reserved_member"}
	kindOf := map[string]fault.Kind{
		"Invalid": fault.Invalid, "NotFound": fault.NotFound, "Conflict": fault.Conflict, "TooLarge": fault.TooLarge, "Full": fault.Full,
		"Unauthorized": fault.Unauthorized, "TooMany": fault.TooMany, "Unavailable": fault.Unavailable, "Timeout": fault.Timeout,
		"Model": fault.Model, "ModelBusy": fault.ModelBusy, "ModelTimeout": fault.ModelTimeout,
	}
	pair := regexp.MustCompile(`fault\.(\w+),\s*(field ?\+ ?)?"([a-z0-9_]+)"|\.wrong\("([a-z0-9_]+)"`)
	codes := map[string][]int{}
	for _, pkg := range []string{"attach", "chat", "db", "reply", "search", "summarize", "tree", "watch"} {
		files, err := filepath.Glob("../" + pkg + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		before := len(codes)
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			source, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range pair.FindAllStringSubmatch(string(source), -1) {
				kind, given := cmp.Or(m[1], "Invalid"), []string{cmp.Or(m[3], m[4])} // package chat's decoder gives wrong only a code
				if m[2] != "" {                                                      // checkText puts the field before
					given = []string{"title" + m[3], "query" + m[3]}
				}
				for _, code := range given {
					if kindOf[kind] == "" {
						t.Errorf("%s is of the kind %s, which has no status", code, kind)
					}
					if !slices.Contains(unreachable, code) {
						codes[code] = append(codes[code], answers[kindOf[kind]].status)
					}
				}
			}
		}
		if len(codes) == before {
			t.Errorf("no code found in package %s", pkg)
		}
	}
	if len(codes) < 40 {
		t.Fatalf("only %d codes found: %v", len(codes), codes)
	}
	return codes
}

// Every kind has a status. Those that a client can't fix have an answer, too.
func TestEveryKindIsAnswered(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{
		fault.Invalid, fault.NotFound, fault.Conflict, fault.TooLarge, fault.Full, fault.Unauthorized, fault.TooMany, fault.Unavailable,
		fault.Timeout, fault.Canceled, fault.Permanent, fault.Model, fault.ModelBusy, fault.ModelTimeout, fault.Internal,
	} {
		p := toProblem(fault.New(kind, "", "field", "secret"))
		if p.Status < 400 || !p.Code.Valid() || p.Detail == "" || strings.Contains(p.Detail, "secret") {
			t.Errorf("%s without a code: %+v", kind, p)
		}
		if kind == fault.Permanent || kind == fault.Internal {
			continue
		}
		p = toProblem(fmt.Errorf("wrapped: %w", fault.New(kind, "id_conflict", "id", "Send another.")))
		if p.Status != answers[kind].status || p.Code != CodeIDConflict || p.Detail != "Send another." || *p.Field != "id" {
			t.Errorf("%s with a code: %+v", kind, p)
		}
	}
}

func TestTitles(t *testing.T) {
	t.Parallel()
	for code, want := range map[Code]string{
		CodeParentNotFound: "Parent not found", CodeInvalidJSON: "Invalid JSON", CodeInvalidID: "Invalid ID", CodeIDConflict: "ID conflict",
		CodeInvalidUTF8: "Invalid UTF-8", CodeMissingToolCallID: "Missing tool call ID",
	} {
		if got := titleOf(code); got != want {
			t.Errorf("title %q, want %q", got, want)
		}
	}
}
