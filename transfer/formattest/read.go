package formattest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// MustStore stores the bundle as a conversation of its own.
func MustStore(rt *rapid.T, store *tree.Store, b tree.Bundle) {
	b.Conversation.ID = uuid.New()
	if _, err := store.Import(context.Background(), b); err != nil {
		rt.Fatalf("%v\n%s", err, Outline(b))
	}
}

// Shared opens a file of real exports. These files stand beside the repository,
// not in it.
func Shared(t testing.TB, name string) *os.File {
	t.Helper()
	dir := check.Must(os.Getwd())(t)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		f, err := os.Open(filepath.Join(dir, "shared", "data", name))
		if err == nil {
			t.Cleanup(func() { f.Close() })
			return f
		}
	}
	t.Skipf("shared/data/%s is not above this package; it holds real exports, which are not part of the repository", name)
	return nil
}

// Fixture returns the path of a file in testdata, at the top of the repository.
func Fixture(t testing.TB, name string) string {
	t.Helper()
	for dir := ".."; len(dir) < 20; dir = filepath.Join("..", dir) {
		path := filepath.Join(dir, "testdata", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("testdata has no %s", name)
	return ""
}

// A StoreFunc is a Store that calls a function for each batch of Import.
type StoreFunc func(context.Context, []tree.Bundle) error

func (StoreFunc) AddAttachment(context.Context, string, []byte) (tree.Attachment, bool, error) {
	return tree.Attachment{}, true, nil
}

func (StoreFunc) Attachments(context.Context, ...[sha256.Size]byte) (map[[sha256.Size]byte]tree.Attachment, error) {
	return nil, nil
}

func (StoreFunc) ImportID(_ context.Context, _ string, former uuid.UUID) (uuid.UUID, error) {
	return former, nil
}

func (f StoreFunc) Import(ctx context.Context, in ...tree.Bundle) ([]tree.Imported, error) {
	out := make([]tree.Imported, len(in))
	for i, b := range in {
		out[i] = tree.Imported{ConversationID: b.Conversation.ID, Created: true, Added: len(b.Nodes)}
	}
	return out, f(ctx, in)
}

// Bundles is a Store that keeps in memory what Import stores.
type Bundles []tree.Bundle

func (*Bundles) AddAttachment(context.Context, string, []byte) (tree.Attachment, bool, error) {
	return tree.Attachment{}, true, nil
}

func (*Bundles) Attachments(context.Context, ...[sha256.Size]byte) (map[[sha256.Size]byte]tree.Attachment, error) {
	return nil, nil
}

func (b *Bundles) ImportID(_ context.Context, _ string, former uuid.UUID) (uuid.UUID, error) {
	return former, nil
}

func (b *Bundles) Import(_ context.Context, in ...tree.Bundle) ([]tree.Imported, error) {
	*b = append(*b, in...)
	return make([]tree.Imported, len(in)), nil
}

// Read imports r into memory, and checks that everything in it can be stored.
func Read(t *testing.T, r io.Reader, format string) (transfer.Report, []tree.Bundle) {
	t.Helper()
	var b Bundles
	report := check.Must(transfer.Import(context.Background(), &b, r, transfer.Options{Format: format}))(t)
	for _, one := range b {
		Check(t, one)
	}
	checkTally(t, report.Tally, nil)
	return report, b
}

// checkTally demands that each node has one fate.
func checkTally(t testing.TB, n format.Tally, data []byte) {
	t.Helper()
	if n.Nodes != n.Kept+n.LeftOut+n.Merged+n.Aside {
		t.Errorf("not every node is accounted for: %+v of\n%.3000s", n, data)
	}
}

// count counts what stands at a path in v.
func count(v any, path string) (n int) {
	if path == "" {
		return 1
	}
	name, rest, _ := strings.Cut(path, ".")
	list, _ := v.([]any)
	members, _ := v.(map[string]any)
	nested, isNested := strings.CutPrefix(name, "^")
	if isNested {
		list, _ = members[nested].([]any)
	}
	for _, below := range list {
		if name == "*" || isNested {
			n += count(below, rest)
		}
		if isNested {
			n += count(below, path)
		}
	}
	for member, below := range members {
		if name == "%" || name == member {
			n += count(below, rest)
		}
	}
	return n
}

// Count returns a report's numbers in one line, and one line for each sort of
// note.
func Count(r transfer.Report) string {
	s := fmt.Sprintf("%s: %d conversations, %d messages, %d branch points, %d leaves", r.Format, r.Conversations, r.Messages, r.BranchPoints, r.Leaves)
	notes := map[string]int{}
	var order []string
	for _, n := range r.Notes {
		sort := fmt.Sprintf("%s %s", n.Action, n.Kind)
		if notes[sort]++; notes[sort] == 1 {
			order = append(order, sort)
		}
	}
	for _, sort := range order {
		s += fmt.Sprintf("\n%s: %d", sort, notes[sort])
	}
	return s
}

// Outline draws a bundle: a line for each message, indented where there is
// more than one reply, and a * before the active head.
func Outline(b tree.Bundle) string {
	children := map[uuid.UUID][]tree.BundleNode{}
	for _, n := range b.Nodes {
		children[n.ParentID] = append(children[n.ParentID], n)
	}
	var out strings.Builder
	var draw func(n tree.BundleNode, indent string)
	draw = func(n tree.BundleNode, indent string) {
		mark := ""
		if n.ID == b.HeadID {
			mark = "*"
		}
		fmt.Fprintf(&out, "%s%s%s\n", indent, mark, BodyLine(n.Body))
		if len(children[n.ID]) > 1 {
			indent += "  "
		}
		for _, c := range children[n.ID] {
			draw(c, indent)
		}
	}
	for _, n := range children[uuid.Nil] {
		draw(n, "")
	}
	return out.String()
}

// BodyLine shows a body as "assistant: text [call call]" or "tool call: text".
func BodyLine(raw json.RawMessage) string {
	m := chat.Read(raw)
	line := string(m.Role)
	if m.Answers() != "" {
		line += " " + m.Answers()
	}
	line += ":"
	for word := range strings.FieldsSeq(chat.Shown(m.Parts)) {
		line += " " + word
	}
	for _, c := range m.Calls {
		line += " [" + c.ID + " " + c.Name + c.Arguments + "]"
	}
	return line
}

// Notes returns a report's notes, one a line.
func Notes(r transfer.Report) string {
	var out strings.Builder
	for _, n := range r.Notes {
		fmt.Fprintf(&out, "%s %s (%s) %s: %s\n", n.Action, n.Kind, n.Conversation, n.Place, n.Detail)
	}
	return out.String()
}

// Same compares texts of several lines.
func Same(t *testing.T, what, got, want string) {
	t.Helper()
	if got, want = strings.TrimSpace(got), strings.TrimSpace(want); got != want {
		t.Errorf("%s:\n%s\n\nwant:\n%s", what, got, want)
	}
}
