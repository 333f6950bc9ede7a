package formattest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// recognition imports files that aren't quite of the format, without its name. What
// comes in of them is a message at least, and what doesn't is named.
func (s Suite) recognition(t *testing.T) {
	data, err := os.ReadFile(Fixture(t, s.Fixtures[0]))
	check.NoError(t, err)
	whole, lines := decoded(data)
	before, said, err := s.read(t, encoded(whole, lines))
	check.NoError(t, err)
	t.Run("cut off", func(t *testing.T) {
		step := 1 + len(data)/100
		if os.Getenv("COPPICE_TEST_LONG") != "" { // which .ci/full sets
			step = 1
		}
		for at := 1; at < len(data); at += step {
			report, now, err := s.read(t, data[:at])
			if err == nil && (none(report) || fewer(said, now) && !lines && Notes(report) == Notes(before)) {
				t.Errorf("cut at byte %d: %d messages, and no word of it\n%s", at, report.Messages, data[:at])
			}
		}
	})
	t.Run("renamed", func(t *testing.T) {
		all := map[string]bool{}
		names(whole, all)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			report, now, err := s.read(t, encoded(renamed(whole, name), lines))
			if err == nil && (none(report) || fewer(said, now) && Notes(report) == Notes(before)) {
				t.Errorf("without %s: %v instead of %v of format %s, and no word of it\n%s", name, now, said, report.Format, Notes(report))
			}
			if err == nil && fewer(said, now) && report.Nodes < before.Nodes && !slices.ContainsFunc(report.Notes, func(n format.Note) bool {
				return n.Action == format.LeftOut && !slices.Contains(before.Notes, n)
			}) {
				t.Errorf("without %s: %d nodes instead of %d of format %s, and no word of them\n%s", name, report.Nodes, before.Nodes, report.Format, Notes(report))
			}
		}
	})
	t.Run("wrapped", func(t *testing.T) {
		for _, around := range []any{[]any{whole}, map[string]any{"x": whole}, map[string]any{"x": []any{whole}, "n": 1}, map[string]any{"x": map[string]any{"y": map[string]any{"z": whole}}}} {
			report, now, err := s.read(t, chat.MustMarshal(around))
			if err != nil || fewer(said, now) {
				t.Errorf("%d messages, %v instead of %v of format %s: %v\n%s", report.Messages, now, said, report.Format, err, chat.MustMarshal(around))
			}
		}
	})
	t.Run("exchanged", func(t *testing.T) {
		others := check.Must(filepath.Glob(filepath.Join(filepath.Dir(Fixture(t, s.Fixtures[0])), "*.json*")))(t)
		rapid.Check(t, func(rt *rapid.T) {
			other, err := os.ReadFile(rapid.SampledFrom(others).Draw(rt, "other"))
			check.NoError(rt, err)
			from, _ := decoded(other)
			mine, _ := decoded(data)
			file := encoded(replaced(rt, mine, elsewhere(rt, from)), lines)
			report, _, err := s.read(t, file)
			if err == nil && none(report) {
				rt.Fatalf("a success without a message:\n%s\n%s", file, Notes(report))
			}
		})
	})
}

// read imports a file of whatever format, and counts the messages of each role that
// say something. It demands that the format saw each of the file's nodes, or names what of
// the file is not its own.
func (s Suite) read(t *testing.T, data []byte) (transfer.Report, map[tree.Role]int, error) {
	t.Helper()
	report, bundles, err := importAs(t, "", data)
	for _, of := range s.all {
		if err != nil || of.Name != report.Format || strings.Contains(Notes(report), "read as one of") {
			continue
		}
		whole, _ := decoded(data)
		if _, isList := whole.([]any); !isList {
			whole = []any{whole}
		}
		there := 0
		for path := range strings.FieldsSeq(of.Nodes) {
			there += count(whole, path)
		}
		foreign := slices.ContainsFunc(report.Notes, func(n format.Note) bool { return n.Action == format.LeftOut && n.Kind == format.KindSyntax })
		if report.Nodes < there && !foreign {
			t.Errorf("%d nodes of %d were seen in a file of %s: %+v\n%.3000s\n%s", report.Nodes, there, report.Format, report.Tally, data, Notes(report))
		}
	}
	said := map[tree.Role]int{}
	for _, b := range bundles {
		for _, n := range b.Nodes {
			if m := chat.Read(n.Body); m.Text() != "" || len(m.Calls) > 0 {
				said[m.Role]++
			}
		}
	}
	return report, said, err
}

// none tells whether a file that holds something gave no message. A conversation of
// Coppice's own may have none.
func none(r transfer.Report) bool { return r.Messages == 0 && (r.Format != "coppice" || r.LeftOut > 0) }

// fewer tells whether messages of some role are gone.
func fewer(before, now map[tree.Role]int) bool {
	for role, n := range before {
		if now[role] < n {
			return true
		}
	}
	return false
}

// replaced puts something in the place of one value in v.
func replaced(rt *rapid.T, v, with any) any {
	deeper := rapid.IntRange(0, 4).Draw(rt, "deeper") > 0
	switch v := v.(type) {
	case []any:
		if deeper && len(v) > 0 {
			i := rapid.IntRange(0, len(v)-1).Draw(rt, "element")
			v[i] = replaced(rt, v[i], with)
			return v
		}
	case map[string]any:
		if deeper && len(v) > 0 {
			name := rapid.SampledFrom(slices.Sorted(maps.Keys(v))).Draw(rt, "member")
			v[name] = replaced(rt, v[name], with)
			return v
		}
	}
	return with
}
