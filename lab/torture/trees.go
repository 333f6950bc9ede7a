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

// A node is a node of a tree.
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
	*conversation
	marks *marks
	nodes map[uuid.UUID]*node
}

// checkTree compares a conversation's tree with the ledger. The caller holds the
// conversation's mu.
func (c *conversation) checkTree(tree treeAnswer, ms *marks) {
	k := &checker{c, ms, make(map[uuid.UUID]*node, len(tree.Data))}
	k.shape(tree)
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
	for _, m := range c.order {
		there := k.nodes[m.id] != nil
		if m.state == acknowledged && !there && !k.prunedBefore(m, now) {
			k.violate("lost", "message %s (%v) was acknowledged %s after the first attempt, and is lost", m.id, m.mark, m.ackedAt.Sub(m.sentAt))
		}
		if m.state == unknown && !there {
			m.state = refused
		}
	}
	if head := k.nodes[tree.HeadID]; head == nil && (tree.HeadID != uuid.Nil || len(k.nodes) > 0) || head != nil && head.Kind != "message" {
		k.violate("head", "the active head %s is no message that is there", tree.HeadID)
	}
}

// shape checks the tree by itself.
func (k *checker) shape(tree treeAnswer) {
	byMark := map[mark]uuid.UUID{}
	for i := range tree.Data {
		n := &tree.Data[i]
		if k.nodes[n.ID] != nil {
			k.violate("doubled", "node %s is there twice", n.ID)
			continue
		}
		k.nodes[n.ID] = n
		parent := k.nodes[n.ParentID]
		switch {
		case n.ParentID != uuid.Nil && parent == nil:
			k.violate("shape", "the %s %s stands under %s, which isn't there before it", n.Kind, n.ID, n.ParentID)
		case parent == nil && (n.Depth != 0 || n.Kind != "message"), parent != nil && (n.Depth != parent.Depth+1 || parent.Kind != "message"):
			k.violate("shape", "the %s %s has depth %d under %s", n.Kind, n.ID, n.Depth, n.ParentID)
		}
		if n.Kind != "message" {
			continue
		}
		m := markOf(n.Preview)
		if other, twice := byMark[m]; twice && m != noMark {
			k.violate("doubled", "%v was stored as %s and as %s", m, other, n.ID)
		}
		byMark[m] = n.ID
	}
}

// stored looks at a message that is there.
func (k *checker) stored(id uuid.UUID, n *node, now time.Time) {
	m := k.messages[id]
	switch {
	case m == nil:
		k.violate("invented", "message %s is there, and nobody sent it: %q", id, n.Preview)
		return
	case m.state == refused:
		k.violate("invented", "message %s is there, and was refused", id)
	case k.prunedBefore(m, now):
		k.violate("came back", "message %s is there, and was pruned, or stood below one that was", id)
	}
	if m.parent != n.ParentID || m.role != n.Role || m.pinned != n.Pinned {
		k.violate("changed", "message %s is there as %+v, and was sent as %+v", id, *n, *m)
	}
	got, parent := markOf(n.Preview), k.messages[m.parent]
	if m.mark == noMark { // an answer that no client has seen: any text will do that the model gave to its parent
		if parent == nil || !k.marks.answers(fmt.Sprintf("[%v]", got), parent.mark) {
			k.violate("changed", "answer %s says %q, which the model didn't say to the message above", m.id, n.Preview)
		}
		m.mark = got
	} else if got != m.mark {
		k.violate("changed", "message %s says %q, and was sent as %v", m.id, n.Preview, m.mark)
	}
	if m.state == unknown {
		m.state, m.ackedAt = acknowledged, now
	}
}

// summary checks that the cutoff of a summary, and the messages that it keeps, lie
// on the path to its anchor.
func (k *checker) summary(n *node) {
	k.conversation.summary = n.ID
	above := map[uuid.UUID]bool{}
	for at := k.nodes[n.ParentID]; at != nil; at = k.nodes[at.ParentID] {
		above[at.ID] = true
	}
	if !above[n.Cutoff] || slices.ContainsFunc(n.Kept, func(id uuid.UUID) bool { return !above[id] }) {
		k.violate("summary", "the cutoff of a summary, or a message that it keeps, isn't above its anchor: %+v", *n)
	}
}
