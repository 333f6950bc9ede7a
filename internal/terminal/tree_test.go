package terminal

import (
	"bufio"
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// golden compares got with the file testdata/tree/name.txt.
func golden(t *testing.T, name, got string) {
	t.Helper()
	check.Golden(t, filepath.Join("testdata", "tree", name+".txt"), got)
}

// planted makes nodes from lines of "name parent role text…", where parent "-"
// is none and role "summary:x" a summary up to x. A name is one letter, which
// fills the last byte of the id.
func planted(lines ...string) []tree.Node {
	nodes := make([]tree.Node, len(lines))
	children := map[uuid.UUID]int{}
	depth := map[uuid.UUID]int{}
	for i, line := range lines {
		f := strings.SplitN(line, " ", 4)
		n := tree.Node{
			ID: plantedID(f[0]), ParentID: plantedID(f[1]), Kind: tree.KindMessage, Role: tree.Role(f[2]),
			Tokens: 10 * (i + 1), Preview: f[3], CreatedAt: time.Unix(int64(i), 0).UTC(),
		}
		if cutoff, ok := strings.CutPrefix(f[2], "summary:"); ok {
			n.Kind, n.Role = tree.KindSummary, tree.RoleUser
			n.Summary = &tree.SummaryRange{LastSummarizedID: plantedID(cutoff), Model: "offline-digest"}
			n.Depth = depth[n.ParentID]
		} else {
			children[n.ParentID]++
			n.Index = children[n.ParentID]
			if n.ParentID != uuid.Nil {
				n.Depth = depth[n.ParentID] + 1
			}
			depth[n.ID] = n.Depth
		}
		nodes[i] = n
	}
	return nodes
}

func plantedID(name string) uuid.UUID {
	if name == "-" {
		return uuid.Nil
	}
	return uuid.MustParse(fmt.Sprintf("%02x%02x%02x00-0000-7000-8000-0000000000%02x", name[0], name[0], name[0], name[0]))
}

func drawn(nodes []tree.Node, head uuid.UUID) string {
	var b bytes.Buffer
	c := &Console{Writer: bufio.NewWriter(&b), Width: 80}
	d := Draw(nodes, head)
	ids := make([]uuid.UUID, len(nodes))
	for i := range nodes {
		ids[i] = nodes[i].ID
	}
	d.Write(c, IDLength(ids))
	c.Line("%v", d.Totals)
	c.Flush()
	return b.String()
}

func TestDraw(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		head  string
		nodes []tree.Node
	}{
		{"empty", "-", nil},
		{"one", "a", planted("a - user Hello")},
		{"line", "d", planted("a - system You are terse.", "b a user One", "c b assistant Two", "d c user Three")},
		{"branches", "f", planted(
			"a - system You are terse.",
			"b a user Plan three days",
			"c b assistant Alfama first",
			"d b assistant Belém first",
			"e c user Cheaper, please",
			"f d user With a child, please",
			"g e assistant Then walk",
			"h c user And with rain?",
			"i b assistant Sintra first",
		)},
		{"nested off the active branch", "i", planted(
			"a - user Hi",
			"b a assistant first answer",
			"c b user x",
			"d b user y",
			"e d assistant long\nline\twith \x1b[31mred and more and more and more and more and more and more",
			"f d assistant other",
			"g c assistant ha",
			"h a assistant second answer",
			"i h user goes on",
		)},
		{"roots", "b", planted("a - user First", "b - user Second", "c - user Third", "d a assistant Answer", "e c assistant Answer")},
		{"active root first", "a", planted("a - user First", "b - user Second", "c - user Third")},
		{"summaries", "e", planted(
			"a - user One",
			"b a assistant Two",
			"c b user Three",
			"s b summary:a They said one",
			"d c assistant Four",
			"e c assistant Fünf 日本語のテキスト 日本語のテキスト 日本語のテキスト 日本語のテキスト",
			"t e summary:b They said one and two",
			"u e summary:c They said one, two and three",
		)},
		{"head amid a branch", "b", planted("a - user One", "b a assistant Two", "c b user Three")},
		{"no head", "-", planted("a - user One", "b a assistant Two", "c a assistant Three")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			golden(t, strings.ReplaceAll(tt.name, " ", "_"), drawn(tt.nodes, plantedID(tt.head)))
		})
	}
}

func TestDrawStyled(t *testing.T) {
	t.Parallel()
	nodes := planted("a - user One", "b a assistant Two", "c a assistant Three")
	var b bytes.Buffer
	c := &Console{Writer: bufio.NewWriter(&b), Width: 80, Styled: true}
	Draw(nodes, plantedID("c")).Write(c, minID)
	c.Flush()
	for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		check.That(t, strings.Contains(line, "\x1b[1m●") || strings.Contains(line, "\x1b[2m"),
			"neither bold nor dim: %q", line)
	}
}

// A drawing has every node once, and a straight line of any length in one column.
func TestDrawDeep(t *testing.T) {
	t.Parallel()
	const n = 20_000
	nodes := make([]tree.Node, n)
	for i := range nodes {
		id := uuid.UUID{0: byte(i >> 16), 1: byte(i >> 8), 2: byte(i), 15: 1}
		nodes[i] = tree.Node{ID: id, Kind: tree.KindMessage, Role: tree.RoleUser, Depth: i, Index: 1}
		if i > 0 {
			nodes[i].ParentID = nodes[i-1].ID
		}
		// An edit at every tenth message: many branch points, and still two columns.
		if i%10 == 9 {
			nodes[i].ParentID, nodes[i].Index = nodes[i-2].ID, 2
		}
		if i%10 == 0 && i > 0 {
			nodes[i].ParentID = nodes[i-2].ID
		}
	}
	d := Draw(nodes, nodes[n-2].ID)
	check.Need(t, len(d.rows) == n, "%d rows, want %d", len(d.rows), n)
	seen := map[uuid.UUID]bool{}
	for _, r := range d.rows {
		check.Need(t, len(r.lines) <= len("│ ├─"), "row %v is indented by %q", r.node.ID, r.lines)
		seen[r.node.ID] = true
	}
	check.That(t, len(seen) == n, "%d nodes drawn, want %d", len(seen), n)
}

func TestIDLength(t *testing.T) {
	t.Parallel()
	parse := func(ids ...string) (out []uuid.UUID) {
		for _, s := range ids {
			out = append(out, uuid.MustParse(s))
		}
		return out
	}
	tests := []struct {
		ids  []uuid.UUID
		want int
	}{
		{nil, 8},
		{parse("01998e6c-0000-7000-8000-000000000001", "01998e6d-0000-7000-8000-000000000001"), 8},
		{parse("01998e6d-0000-7000-8000-000000000001", "01998e6c-0000-7000-8000-000000000001", "01998e6c-0001-7000-8000-000000000001"), 13},
	}
	for _, tt := range tests {
		got := IDLength(slices.Clone(tt.ids))
		check.That(t, got == tt.want, "IDLength(%v) = %d, want %d", tt.ids, got, tt.want)
	}
}
