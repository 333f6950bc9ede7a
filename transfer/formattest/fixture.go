package formattest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/normalize"
	"github.com/coppice-chat/coppice/tree"
)

// fixtures reads each fixture and shows it: the tree, when each message was said
// and what is kept of its source, and every note.
func (s Suite) fixtures(t *testing.T) {
	for _, name := range s.Fixtures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(Fixture(t, name))
			check.NoError(t, err)
			report, err := transfer.Import(t.Context(), nil, bytes.NewReader(data), transfer.Options{DryRun: true})
			if report.Format != s.Name {
				t.Errorf("the format was recognized as %q, %v", report.Format, err)
			}
			file := Fixture(t, strings.TrimSuffix(name, filepath.Ext(name))+".txt")
			got := Parse(t, s.format(), data).show(s.Name)
			if *check.Update {
				check.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want := check.Must(os.ReadFile(file))(t)
			Same(t, name, got, string(want))
		})
	}
}

// A Parsed is what a format read of a file, without a store.
type Parsed struct {
	Bundles []tree.Bundle
	Notes   []format.Note
	Nodes   format.Tally
	Err     error
}

// Parse reads data as a file of format f, and checks that the store would take
// everything in it.
func Parse(t testing.TB, f format.Format, data []byte) (p Parsed) {
	t.Helper()
	in := format.NewInput(t.Context(), bytes.NewReader(data), func(n format.Note) { p.Notes = append(p.Notes, n) })
	p.Err = f.Parse(in, func(c format.Conversation) error {
		if c.TooDense() != "" {
			return nil
		}
		id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(c.SourceID))
		if c.OwnIDs {
			id = uuid.MustParse(c.SourceID)
		}
		b, _, notes := normalize.Bundle(&c, id, f.Name())
		if c.TooDense() != "" {
			return nil
		}
		checkTally(t, c.Tally(), data)
		p.Nodes.Add(c.Tally())
		p.Bundles, p.Notes = append(p.Bundles, b), append(p.Notes, notes...)
		return nil
	})
	p.Nodes.Add(in.Tally())
	for _, b := range p.Bundles {
		Check(t, b)
	}
	return p
}

func (p Parsed) show(format string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", format)
	for _, b := range p.Bundles {
		fmt.Fprintf(&out, "\n%q, %s\n%s\n\n", b.Conversation.Title, timeText(b.Conversation.CreatedAt, time.DateOnly+" 15:04:05.999999"), b.Conversation.Metadata)
		out.WriteString(Outline(b) + "\n")
		for _, n := range b.Nodes {
			fmt.Fprintf(&out, "%s %s\n", timeText(n.CreatedAt, "15:04:05.999999"), n.Metadata)
			if n.Reasoning != "" {
				fmt.Fprintf(&out, "  thought %q\n", n.Reasoning)
			}
		}
	}
	fmt.Fprintf(&out, "\n%d nodes: %d kept, %d left out, %d merged, %d aside\n", p.Nodes.Nodes, p.Nodes.Kept, p.Nodes.LeftOut, p.Nodes.Merged, p.Nodes.Aside)
	if len(p.Notes) > 0 {
		out.WriteString("\n" + Notes(transfer.Report{Notes: p.Notes}))
	}
	if p.Err != nil {
		fmt.Fprintf(&out, "\nerror: %v\n", p.Err)
	}
	return out.String()
}

func timeText(t time.Time, layout string) string {
	if t.IsZero() {
		return "no time"
	}
	return t.Format(layout)
}
