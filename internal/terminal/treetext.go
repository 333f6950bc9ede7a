package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// maxMarks bounds the column of marks in a drawing. Rows that lie deeper push
// their text to the right.
const maxMarks = 44

// Write writes the rows as text: marks, role, index among the siblings, tokens,
// and the start of the text. The end of a branch has the id that names the
// branch. A summary has the range that it folds.
func (d Drawing) Write(c *Console, idLength int) {
	marks := 0
	for _, r := range d.rows {
		marks = max(marks, ansi.StringWidth(r.lines)+2+ansi.StringWidth(r.label()))
	}
	marks = min(marks, maxMarks)
	for _, r := range d.rows {
		left := Pad(r.lines+r.mark()+" "+r.label(), marks)
		tokens := fmt.Sprintf("%7s  ", Thousands(r.node.Tokens))
		id := r.tag(idLength)
		text := c.Width - ansi.StringWidth(left) - len(tokens) - ansi.StringWidth(id)
		if id != "" {
			text -= 2
		}
		preview := OneLine(r.text(idLength), max(text, MinText))
		if id != "" {
			preview += "  "
		}
		if preview == "" && id == "" {
			tokens = strings.TrimRight(tokens, " ")
		}
		if r.active {
			c.Line("%s%s%s%s", r.styledMarks(c, left), c.Dim(tokens), preview, c.Bold(id))
		} else {
			c.Line("%s%s", left, c.Dim(tokens+preview+id))
		}
	}
}

// styledMarks makes the marks of an active row bold, and the lines beside them
// not.
func (r row) styledMarks(c *Console, left string) string {
	return r.lines + c.Bold(strings.TrimPrefix(left, r.lines))
}

func (r row) mark() string {
	switch {
	case r.node.Kind == tree.KindSummary:
		return "◆"
	case r.active:
		return "●"
	}
	return "○"
}

// label says what a node is: "assistant ‹2/3›".
func (r row) label() string {
	if r.node.Kind == tree.KindSummary {
		return "folds " + Count(r.folded, "message")
	}
	label := string(r.node.Role)
	if r.count > 1 {
		label += fmt.Sprintf(" ‹%d/%d›", r.node.Index, r.count)
	}
	if r.node.Pinned {
		label += " pinned"
	}
	if r.node.Graft != nil {
		label += " grafted"
	}
	if r.node.Rating != 0 {
		label += fmt.Sprintf(" %+d", r.node.Rating)
	}
	return label
}

// text is the start of what a message says, behind the branch from which it was
// brought, or the range of a summary.
func (r row) text(idLength int) string {
	if s := r.node.Summary; s != nil {
		return "up to " + s.LastSummarizedID.String()[:idLength] + ", " + Writer(s.Model, s.Origin)
	}
	if g := r.node.Graft; g != nil {
		return "from " + g.FromHeadID.String()[:idLength] + ": " + r.node.Preview
	}
	if r.node.Label != "" {
		return "[" + r.node.Label + "] " + r.node.Preview
	}
	return r.node.Preview
}

// tag names the branch that ends at a row, or a summary; "" for a row in the
// middle of a branch.
func (r row) tag(idLength int) string {
	id := r.node.ID.String()[:idLength]
	switch {
	case r.node.Kind == tree.KindSummary:
		return "◆ " + id
	case r.head:
		return "← " + id + " active"
	case r.leaf:
		return "← " + id
	}
	return ""
}

// String returns the totals as a line.
func (t Totals) String() string {
	parts := []string{Count(t.messages, "message")}
	if t.summaries > 0 {
		parts = append(parts, Count(t.summaries, "summary"))
	}
	parts = append(parts, Count(t.branchPoints, "branch point"), Count(t.leaves, "leaf"), Count(int(t.tokens), "token"))
	return strings.Join(parts, ", ")
}

// minID is how many characters of an id are shown at least.
const minID = 8

// IDLength returns how many leading characters are needed to tell the ids apart.
func IDLength(ids []uuid.UUID) int {
	sorted := slices.SortedFunc(slices.Values(ids), func(a, b uuid.UUID) int { return strings.Compare(string(a[:]), string(b[:])) })
	n := minID
	for i := 1; i < len(sorted); i++ {
		a, b := sorted[i-1].String(), sorted[i].String()
		same := 0
		for same < len(a) && a[same] == b[same] {
			same++
		}
		if same < len(a) {
			n = max(n, same+1)
		}
	}
	return n
}

// Writer says what wrote a summary, and whether an import brought its text.
func Writer(model string, origin *tree.Origin) string {
	switch {
	case origin == nil:
		return model
	case origin.Merged:
		return model + ", from an imported one"
	}
	return model + ", imported"
}

// Grafted says from where a message was brought.
func Grafted(g tree.Graft) string {
	text := "from " + g.FromHeadID.String() + ", " + Count(g.Messages, "message")
	if g.Model != "" {
		text += " summarized by " + g.Model
	}
	if g.Gone {
		text += ", deleted since"
	}
	return text
}
