package torture

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// A treeAnswer is a conversation's tree, as the REST API shows it.
type treeAnswer struct {
	HeadID uuid.UUID `json:"head_id"`
	Data   []node    `json:"data"`
}

type node struct {
	ID       uuid.UUID   `json:"id"`
	ParentID uuid.UUID   `json:"parent_id"`
	Kind     string      `json:"kind"`
	Role     string      `json:"role"`
	Depth    int         `json:"depth"`
	Preview  string      `json:"preview"`
	Pinned   bool        `json:"pinned"`
	Cutoff   uuid.UUID   `json:"last_summarized_id"`
	Kept     []uuid.UUID `json:"kept_ids"`
}

// A checker compares a conversation with the ledger, while nothing but
// compactions is under way. It notes in the ledger what is now known.
type checker struct {
	c     *conversation
	tree  treeAnswer
	marks *marks
	nodes map[uuid.UUID]*node
	found []finding
}

func (k *checker) wrong(kind, format string, args ...any) {
	k.found = append(k.found, finding{kind, fmt.Sprintf("conversation %s: ", k.c.id) + fmt.Sprintf(format, args...)})
}

// checkTree compares a conversation's tree with the ledger. The caller holds the
// conversation's mu.
func checkTree(c *conversation, tree treeAnswer, ms *marks) []finding {
	k := &checker{c: c, tree: tree, marks: ms, nodes: make(map[uuid.UUID]*node, len(tree.Data))}
	k.shape()
	for _, m := range c.order { // a prune without an answer has happened or never will
		if m.state == acknowledged && !m.pruneSentAt.IsZero() && m.prunedAt.IsZero() {
			if m.pruneSentAt = (time.Time{}); k.nodes[m.id] == nil {
				m.pruneSentAt, m.prunedAt = time.Now(), time.Now()
			}
		}
	}
	now := time.Now()
	for id, n := range k.nodes {
		if n.Kind == "message" {
			k.stored(id, n, now)
		} else {
			k.summary(n)
		}
	}
	k.missing(now)
	if head := k.nodes[tree.HeadID]; head == nil && (tree.HeadID != uuid.Nil || len(k.nodes) > 0) || head != nil && head.Kind != "message" {
		k.wrong("head", "the active head %s is no message that is there", tree.HeadID)
	}
	return k.found
}

// shape checks the tree by itself.
func (k *checker) shape() {
	byMark := map[mark]uuid.UUID{}
	for i := range k.tree.Data {
		n := &k.tree.Data[i]
		if k.nodes[n.ID] != nil {
			k.wrong("doubled", "node %s is there twice", n.ID)
			continue
		}
		k.nodes[n.ID] = n
		parent := k.nodes[n.ParentID]
		switch {
		case n.ParentID != uuid.Nil && parent == nil:
			k.wrong("shape", "the %s %s stands under %s, which isn't there before it", n.Kind, n.ID, n.ParentID)
		case parent == nil && (n.Depth != 0 || n.Kind != "message"), parent != nil && (n.Depth != parent.Depth+1 || parent.Kind != "message"):
			k.wrong("shape", "the %s %s has depth %d under %s", n.Kind, n.ID, n.Depth, n.ParentID)
		}
		if n.Kind != "message" {
			continue
		}
		m := markOf(n.Preview)
		if other, twice := byMark[m]; twice && m != noMark {
			k.wrong("doubled", "%v was stored as %s and as %s", m, other, n.ID)
		}
		byMark[m] = n.ID
	}
}

// stored looks at a message that is there.
func (k *checker) stored(id uuid.UUID, n *node, now time.Time) {
	m := k.c.messages[id]
	switch {
	case m == nil:
		k.wrong("invented", "message %s is there, and nobody sent it: %q", id, n.Preview)
		return
	case m.state == refused:
		k.wrong("invented", "message %s is there, and was refused", id)
	case k.c.prunedBefore(m, now):
		k.wrong("came back", "message %s is there, and was pruned, or stood below one that was", id)
	}
	if m.parent != n.ParentID || m.role != n.Role || m.pinned != n.Pinned {
		k.wrong("changed", "message %s is there as %+v, and was sent as %+v", id, *n, *m)
	}
	got, parent := markOf(n.Preview), k.c.messages[m.parent]
	if m.mark == noMark { // an answer that no client has seen: any text will do that the model gave to its parent
		if known, _ := k.marks.get(got); parent == nil || !known.answer || !k.marks.answers(fmt.Sprintf("[%v]", got), parent.mark) {
			k.wrong("changed", "answer %s says %q, which the model didn't say to the message above", m.id, n.Preview)
		}
		m.mark = got
	} else if got != m.mark {
		k.wrong("changed", "message %s says %q, and was sent as %v", m.id, n.Preview, m.mark)
	}
	if m.state == unknown {
		m.state, m.ackedAt = acknowledged, now
	}
}

// summary checks that the cutoff of a summary, and the messages that it keeps, lie
// on the path to its anchor.
func (k *checker) summary(n *node) {
	k.c.summary = n.ID
	above := map[uuid.UUID]bool{}
	for at := k.nodes[n.ParentID]; at != nil; at = k.nodes[at.ParentID] {
		above[at.ID] = true
	}
	if !above[n.Cutoff] || slices.ContainsFunc(n.Kept, func(id uuid.UUID) bool { return !above[id] }) {
		k.wrong("summary", "the cutoff of a summary, or a message that it keeps, isn't above its anchor: %+v", *n)
	}
}

// missing looks for each message that should be there.
func (k *checker) missing(now time.Time) {
	for _, m := range k.c.order {
		there := k.nodes[m.id] != nil
		if m.state == acknowledged && !there && !k.c.prunedBefore(m, now) {
			k.wrong("lost", "message %s (%v) was acknowledged %s after the first attempt, and is lost", m.id, m.mark, m.ackedAt.Sub(m.sentAt))
		}
		if m.state == unknown && !there {
			m.state = refused
		}
	}
}
