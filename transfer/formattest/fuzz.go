package formattest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer/format"
)

// Fuzz feeds the formats with variations of their fixtures. On any input a format must
// not panic, the store must take everything that it yields, and the same input must give
// the same result.
func Fuzz(f *testing.F, suites []Suite) {
	for i, s := range suites {
		for _, file := range s.Fixtures {
			data, err := os.ReadFile(Fixture(f, file))
			check.NoError(f, err)
			f.Add(uint8(i), data)
			// Elements one by one are easier to change into something telling.
			err = format.NewInput(f.Context(), bytes.NewReader(data), func(format.Note) {}).EachElement(func(_ string, raw json.RawMessage) error {
				f.Add(uint8(i), []byte(raw))
				return nil
			})
			if err != nil && filepath.Ext(file) == ".json" {
				f.Fatal(err)
			}
		}
		for _, seed := range []string{"", "[", "{}", "[[]]", "null", `"`, `{"a":`, "[{},{}]"} {
			f.Add(uint8(i), []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, data []byte) {
		s := suites[int(i)%len(suites)]
		first := Parse(t, s.format(), data)
		checkNotes(t, first.Notes)
		second := Parse(t, s.format(), data)
		if first.show("") != second.show("") {
			t.Error("the same input gave two different results")
		}
	})
}

// changes exchanges, doubles, takes out or puts elsewhere something in the first
// fixture: everything is read or noted, and the store would take what comes out.
func (s Suite) changes(t *testing.T) {
	data := check.Must(os.ReadFile(Fixture(t, s.Fixtures[0])))(t)
	rapid.Check(t, func(rt *rapid.T) {
		raw := Changed(rt, data)
		p := Parse(t, s.format(), raw)
		checkNotes(t, p.Notes)
		if t.Failed() {
			rt.Fatalf("%s\n%s", raw, p.show(s.Name))
		}
	})
}
