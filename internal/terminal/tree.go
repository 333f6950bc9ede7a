package terminal

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// A Drawing is a conversation's tree as rows from top to bottom.
//
// A straight path stays in one column, however long. At a branch point all
// children but one open a column to the right, each with all that lies below
// it, and the one that is left goes on in the column: the child on the active
// branch, or else the newest. So a row with a mark in a column follows from the
// mark above it in the same column, or from the row that its line starts at.
type Drawing struct {
	rows   []row
	Totals Totals
}

// A row is one node of a drawing.
type row struct {
	node   *tree.Node
	lines  string // what stands left of the mark
	active bool   // on the path root → active head
	head   bool   // the active head
	leaf   bool
	count  int // of its siblings, itself included; 0 for a summary
	folded int // for a summary: messages of the branch that it replaces
}

// Totals count what a tree has.
type Totals struct {
	messages, summaries, branchPoints, leaves int
	tokens                                    int64
}

// Draw lays out nodes, which come with parents before children. It takes time
// and memory in proportion to them, if branch points are not nested by the
// thousand.
func Draw(nodes []tree.Node, head uuid.UUID) Drawing {
	var d Drawing
	index := make(map[uuid.UUID]*tree.Node, len(nodes))
	children := make(map[uuid.UUID][]*tree.Node, len(nodes))
	summaries := make(map[uuid.UUID][]*tree.Node)
	for i := range nodes {
		n := &nodes[i]
		index[n.ID] = n
		if n.Kind == tree.KindSummary {
			summaries[n.ParentID] = append(summaries[n.ParentID], n)
			d.Totals.summaries++
			continue
		}
		children[n.ParentID] = append(children[n.ParentID], n)
		d.Totals.messages++
		d.Totals.tokens += int64(n.Tokens)
	}
	prefixes := prefixLengths(nodes)
	active := make(map[uuid.UUID]bool)
	for n := index[head]; n != nil; n = index[n.ParentID] {
		active[n.ID] = true
	}

	type item struct {
		row
		below string // what stands left of the marks of what continues it
	}
	var stack []item
	// open puts what hangs from a parent on the stack, first row on top.
	open := func(parent uuid.UUID, lines string) {
		kids := children[parent]
		slices.SortFunc(kids, func(a, b *tree.Node) int { return cmp.Compare(a.Index, b.Index) })
		trunk := slices.IndexFunc(kids, func(n *tree.Node) bool { return active[n.ID] })
		if trunk < 0 {
			trunk = len(kids) - 1
		}
		next := func(n *tree.Node, lines, below string) {
			r := row{
				node: n, lines: lines, active: active[n.ID], head: n.ID == head,
				count: len(kids), leaf: len(children[n.ID]) == 0,
			}
			stack = append(stack, item{r, below})
		}
		if trunk >= 0 {
			next(kids[trunk], lines, lines)
		}
		for i, n := range slices.Backward(kids) {
			if i == trunk {
				continue
			}
			corner := "├─"
			if first := i == 0 || i == 1 && trunk == 0; first && parent == uuid.Nil {
				corner = "┌─" // nothing stands above the roots
			}
			next(n, lines+corner, lines+"│ ")
		}
		for i, n := range slices.Backward(summaries[parent]) {
			corner := "├─"
			if len(kids) == 0 && i == len(summaries[parent])-1 {
				corner = "╰─"
			}
			r := row{node: n, lines: lines + corner, active: active[parent]}
			if cutoff := index[n.Summary.LastSummarizedID]; cutoff != nil {
				r.folded = max(0, cutoff.Depth+1-prefixes[cutoff.ID])
			}
			stack = append(stack, item{r, ""})
		}
		if len(kids) > 1 && parent != uuid.Nil {
			d.Totals.branchPoints++
		}
	}
	open(uuid.Nil, "")
	d.rows = make([]row, 0, len(nodes))
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		d.rows = append(d.rows, top.row)
		if top.node.Kind == tree.KindSummary {
			continue
		}
		if top.leaf {
			d.Totals.leaves++
		}
		open(top.node.ID, top.below)
	}
	return d
}

// prefixLengths counts for each message the leading system and developer
// messages of its branch, which no summary replaces.
func prefixLengths(nodes []tree.Node) map[uuid.UUID]int {
	lengths := make(map[uuid.UUID]int, len(nodes))
	for _, n := range nodes {
		leading := n.Role == tree.RoleSystem || n.Role == tree.RoleDeveloper
		if length := lengths[n.ParentID]; leading && length == n.Depth {
			lengths[n.ID] = length + 1
		} else {
			lengths[n.ID] = length
		}
	}
	return lengths
}
