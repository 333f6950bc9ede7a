package transfer

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/tree"
)

var update = flag.Bool("update", false, "write what is read of the fixtures anew")

// Every fixture with a .txt beside it is read and shown: the tree, when each
// message was said and what is kept of its source, and every note.
func TestFixtures(t *testing.T) {
	t.Parallel()
	shown, err := filepath.Glob("../testdata/*.txt")
	if err != nil || len(shown) == 0 {
		t.Fatalf("nothing in testdata: %v", err)
	}
	for _, file := range shown {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, err := filepath.Glob("../testdata/" + name + ".json*")
			if err != nil || len(files) != 1 {
				t.Fatalf("%v, %v", files, err)
			}
			data, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			f, _, err := choose("", data)
			if err != nil {
				t.Fatal(err)
			}
			got := show(f.Name(), parsed(t, f, data))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			same(t, files[0], got, string(want))
		})
	}
}

// A reading is what a file gave, without a store.
type reading struct {
	bundles []tree.Bundle
	notes   []Note
	err     error
}

// parsed reads data as a file of format f, and checks that the store would
// take all of it.
func parsed(t testing.TB, f format, data []byte) (r reading) {
	t.Helper()
	in := newInput(t.Context(), bytes.NewReader(data), func(n Note) { r.notes = append(r.notes, n) })
	r.err = f.Parse(in, func(c Conversation) error {
		if c.tooDense() != "" {
			return nil
		}
		b, _, notes := normalize(c, publicID(&c, f.Name(), ""), f.Name())
		r.bundles, r.notes = append(r.bundles, b), append(r.notes, notes...)
		return nil
	})
	for _, b := range r.bundles {
		if err := checkBundle(b); err != nil {
			t.Errorf("%q: %v", b.Conversation.Title, err)
		}
		checkBodies(t, b)
	}
	return r
}

func show(format string, r reading) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", format)
	for _, b := range r.bundles {
		fmt.Fprintf(&out, "\n%q, %s\n%s\n\n", b.Conversation.Title, timeText(b.Conversation.CreatedAt, time.DateOnly+" 15:04:05.999999"), b.Conversation.Metadata)
		out.WriteString(outline(b) + "\n")
		for _, n := range b.Nodes {
			fmt.Fprintf(&out, "%s %s\n", timeText(n.CreatedAt, "15:04:05.999999"), n.Metadata)
		}
	}
	if len(r.notes) > 0 {
		out.WriteString("\n" + notesOf(Report{Notes: r.notes}))
	}
	if r.err != nil {
		fmt.Fprintf(&out, "\nerror: %v\n", r.err)
	}
	return out.String()
}

func timeText(t time.Time, layout string) string {
	if t.IsZero() {
		return "no time"
	}
	return t.Format(layout)
}
