// Package formattest is the suite that every format of package transfer has to
// pass, and what tests of formats share.
package formattest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/format/coppice"
	"github.com/coppice-chat/coppice/tree"
)

// A Suite is a format, and what the suite needs to test it.
type Suite struct {
	Name string // of the format

	// Fixtures are files of the format in testdata. Beside each stands a .txt
	// file of the same name, which shows what the format reads of it.
	Fixtures []string

	// Nodes are the paths of the nodes in a list of the file's elements, apart by spaces: *
	// is any element of a list, % any member, and ^name any element of the lists of that
	// name, at any depth.
	Nodes string

	// Sample writes files of the format.
	Sample Sample

	all []Suite
}

// format gives the format of the suite.
func (s Suite) format() format.Format {
	all := transfer.All()
	return all[slices.IndexFunc(all, func(f format.Format) bool { return f.Name() == s.Name })]
}

// Run tries every format:
//
//   - its fixtures are recognized, and read as their .txt files show
//   - a fixture that is cut off, with a member renamed, or with a piece of another
//     format's, is an error, or comes in with a word of what is missing
//   - of whatever file, each node is kept, left out with a note, or merged into another
//   - what is read goes out as Coppice's own format and comes in again, the same
//   - whatever is changed in a fixture, the store takes what comes out
//   - what is repaired or left out is named
//   - when the context ends in the middle of a file, the reading ends soon after
//   - what holds no message costs no more than its bytes may, nor do many calls of
//     one id
//   - it takes no more memory than a few times the largest conversation
func Run(t *testing.T, suites []Suite) {
	t.Parallel()
	for _, f := range transfer.All() {
		if !slices.ContainsFunc(suites, func(s Suite) bool { return s.Name == f.Name() }) {
			t.Errorf("%s has no suite", f.Name())
		}
	}
	for _, s := range suites {
		s.all = suites
		t.Run(s.Name, s.run)
	}
}

func (s Suite) run(t *testing.T) {
	if s.measured(t) {
		return
	}
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"fixtures": s.fixtures, "recognition": s.recognition, "round trip": s.roundTrip, "changes": s.changes, "repairs": s.repairs, "stops": s.stops, "costs": s.costs, "memory": s.memory,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// importAs imports data as a file of the format, or as the one that its content
// tells.
func importAs(t testing.TB, name string, data []byte) (transfer.Report, Bundles, error) {
	t.Helper()
	var b Bundles
	report, err := transfer.Import(t.Context(), &b, bytes.NewReader(data), transfer.Options{Format: name})
	for _, one := range b {
		Check(t, one)
	}
	checkTally(t, report.Tally, data)
	return report, b, err
}

// roundTrip exports what is read of the fixtures, and imports it again.
func (s Suite) roundTrip(t *testing.T) {
	for _, name := range s.Fixtures {
		data, err := os.ReadFile(Fixture(t, name))
		check.NoError(t, err)
		_, all, err := importAs(t, s.Name, data)
		check.NoError(t, err)
		for _, b := range all {
			var file bytes.Buffer
			check.NoError(t, export(t, b, &file))
			report, again, err := importAs(t, "", file.Bytes())
			if err != nil || len(again) != 1 || report.Format != "coppice" || len(report.Notes) > 0 {
				t.Fatalf("%s: %d conversations of format %q, %v\n%s", name, len(again), report.Format, err, Notes(report))
			}
			Same(t, name+" after a round trip", plain(again[0]), plain(b))
		}
	}
}

// export writes a bundle as a store would that has no attachments.
func export(t *testing.T, b tree.Bundle, w io.Writer) error {
	c := b.Conversation
	out := tree.Conversation{ID: c.ID, Title: c.Title, Metadata: orEmpty(c.Metadata), Settings: orEmpty(c.Settings), CreatedAt: c.CreatedAt, HeadID: b.HeadID, Source: b.Source, Order: c.Order}
	nodes := func(yield func(tree.BundleNode, error) bool) {
		for _, n := range b.Nodes {
			if !yield(n, nil) {
				return
			}
		}
	}
	return coppice.Export(t.Context(), out, nodes, func(context.Context, [sha256.Size]byte) (tree.Attachment, []byte, error) {
		return tree.Attachment{}, nil, fault.New(fault.NotFound, "attachment_not_found", "", "There is none.")
	}, w)
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("{}")
	}
	return raw
}

// plain is a bundle as comparable text.
func plain(b tree.Bundle) string {
	var out strings.Builder
	c := b.Conversation
	fmt.Fprintf(&out, "%s %q %s %s, head %s, %+v\n", c.ID, c.Title, orEmpty(c.Metadata), orEmpty(c.Settings), b.HeadID, c.Order)
	for _, n := range b.Nodes {
		fmt.Fprintf(&out, "%s under %s, %s, pinned %t, %q, %q, %q", n.ID, n.ParentID, n.CreatedAt.UTC().Format(time.RFC3339Nano), n.Pinned, n.Body, n.Reasoning, n.Metadata)
		if n.Summary != nil {
			fmt.Fprintf(&out, ", %+v", *n.Summary)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// repairs tries what every format repairs or leaves out: each is named.
func (s Suite) repairs(t *testing.T) {
	sample := s.Sample
	file := func(elements ...string) string {
		return sample.Before + strings.Join(elements, sample.Between) + sample.After
	}
	one, two := fmt.Sprintf(sample.Element, 1, 0, ""), fmt.Sprintf(sample.Element, 2, 1, "")
	junk := "5"
	if strings.HasPrefix(sample.Element, `"`) { // a member
		junk = `"junk":5`
	}
	for name, test := range map[string]struct {
		in   string
		kind format.Kind // "" for any
	}{
		"text that can't be stored":    {file(fmt.Sprintf(sample.Text, `a\u0000b`)), format.KindText},
		"half a character":             {file(fmt.Sprintf(sample.Text, `a\ud83db`)), format.KindText},
		"invalid UTF-8":                {file(fmt.Sprintf(sample.Text, "a\xffb")), format.KindText},
		"an element that is no object": {file(one, junk, two), ""},
		"an element that says nothing": {file(one, sample.empty(), two), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, _, err := importAs(t, s.Name, []byte(test.in))
			if err != nil {
				t.Fatalf("%v\n%s", err, test.in)
			}
			checkNotes(t, report.Notes)
			if !slices.ContainsFunc(report.Notes, func(n format.Note) bool { return test.kind == "" || n.Kind == test.kind }) {
				t.Errorf("no note of it in %q\n%s", Notes(report), test.in)
			}
		})
	}
}

// checkNotes fails where a note doesn't say what there was, and where.
func checkNotes(t testing.TB, notes []format.Note) {
	t.Helper()
	for _, n := range notes {
		if n.Action == "" || n.Kind == "" || n.Detail == "" || strings.ContainsAny(n.Place, "\n\x00") {
			t.Errorf("note %+v", n)
		}
	}
}

// stops ends the context in the middle of a file: every parser stops within a
// few hundred elements, also in the middle of one conversation, and nothing is
// stored.
func (s Suite) stops(t *testing.T) {
	const elements = 5000
	i := 0
	in := s.Sample.file(elements*format.BytesPerMessage, func(n int) string {
		i = n
		return fmt.Sprintf(s.Sample.Element, n, n-1, `,"pad":"`+strings.Repeat("x", format.BytesPerMessage)+`"`)
	})
	whole, err := io.ReadAll(in)
	if err != nil || i < elements/3 {
		t.Fatal(i, err)
	}
	ended := &ending{Context: t.Context(), after: 1}
	input := format.NewInput(ended, bytes.NewReader(whole), func(format.Note) {})
	emitted := 0
	_ = s.format().Parse(input, func(format.Conversation) error {
		if input.Stopped() == nil {
			emitted++
		}
		return input.Stopped()
	})
	if emitted > 0 || input.Asked() > 3*256 {
		t.Errorf("%d conversations, and %d elements read of %d", emitted, input.Asked(), i)
	}
	var b Bundles
	ctx, cancel := context.WithCancel(t.Context())
	last := &generated{next: func() string { cancel(); return "" }, done: new(int)}
	from := io.MultiReader(bytes.NewReader(whole[:len(whole)-100]), last, bytes.NewReader(whole[len(whole)-100:]))
	if _, err := transfer.Import(ctx, &b, from, transfer.Options{Format: s.Name}); !errors.Is(err, context.Canceled) || len(b) > 0 {
		t.Errorf("%v, %d conversations", err, len(b))
	}
}

// costs reads what takes much work for its bytes: elements that are hardly anything,
// which are left out together, and calls that all have one id, which come in.
func (s Suite) costs(t *testing.T) {
	junk := "5"
	if strings.HasPrefix(s.Sample.Element, `"`) { // a member
		junk = `"j":5`
	}
	read := func(in io.Reader) (dense string, messages int, err error) {
		data := check.Must(io.ReadAll(in))(t)
		input := format.NewInput(t.Context(), bytes.NewReader(data), func(format.Note) {})
		err = s.format().Parse(input, func(c format.Conversation) error {
			dense, messages = c.TooDense(), len(c.Messages)
			return nil
		})
		return dense, messages, err
	}
	if dense, _, err := read(s.Sample.file(1<<20, func(int) string { return junk })); dense == "" && !errors.Is(err, fault.TooLarge) {
		t.Errorf("a megabyte of %q is read to its end", junk)
	}
	if s.Sample.Calls == "" {
		return
	}
	before, after, _ := strings.Cut(s.Sample.Blocks, "%s")
	list := Sample{Before: s.Sample.Before + before, Between: ",", After: after + s.Sample.After}
	one := numbered(s.Sample.Calls, 1)
	if dense, messages, err := read(list.file(3000*len(one), func(int) string { return one })); dense != "" || messages == 0 || err != nil {
		t.Errorf("calls of one id: %d messages, %s, %v", messages, dense, err)
	}
}

// An ending context ends after it was asked so many times.
type ending struct {
	context.Context
	after int
}

func (e *ending) Err() error {
	if e.after--; e.after < 0 {
		return context.Canceled
	}
	return nil
}
