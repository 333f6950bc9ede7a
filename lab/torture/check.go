package torture

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// A node is one of a tree's, as the REST API shows it.
type node struct {
	ID           uuid.UUID   `json:"id"`
	ParentID     uuid.UUID   `json:"parent_id"`
	Kind         string      `json:"kind"`
	Role         string      `json:"role"`
	Depth        int         `json:"depth"`
	SiblingIndex int         `json:"sibling_index"`
	Preview      string      `json:"preview"`
	Pinned       bool        `json:"pinned"`
	Tokens       int         `json:"tokens"`
	CreatedAt    time.Time   `json:"created_at"`
	Model        string      `json:"model"`
	Cutoff       uuid.UUID   `json:"last_summarized_id"`
	Prior        uuid.UUID   `json:"prior_summary_id"`
	Kept         []uuid.UUID `json:"kept_ids"`
}

// A treeAnswer is a conversation's tree, as the REST API shows it.
type treeAnswer struct {
	ConversationID uuid.UUID `json:"conversation_id"`
	HeadID         uuid.UUID `json:"head_id"`
	Data           []node    `json:"data"`
}

// A checker compares a conversation with the ledger, while nothing is under
// way but compactions. It says what is wrong, and notes in the ledger what is
// now known.
type checker struct {
	c     *conversation
	tree  treeAnswer
	marks *marks
	nodes map[uuid.UUID]*node
	found []finding
}

// A finding is a promise broken.
type finding struct{ kind, detail string }

func (k *checker) wrong(kind, format string, args ...any) {
	k.found = append(k.found, finding{kind, fmt.Sprintf("conversation %s: ", k.c.id) + fmt.Sprintf(format, args...)})
}

// checkTree compares a conversation's tree with the ledger. The caller holds
// the conversation's mu.
func checkTree(c *conversation, tree treeAnswer, ms *marks) []finding {
	k := &checker{c: c, tree: tree, marks: ms, nodes: make(map[uuid.UUID]*node, len(tree.Data))}
	k.shape()
	k.settle()
	k.stored()
	k.missing()
	k.siblings()
	k.summaries()
	k.head()
	return k.found
}

// shape checks the tree by itself.
func (k *checker) shape() {
	said := map[mark]uuid.UUID{}
	for i := range k.tree.Data {
		n := &k.tree.Data[i]
		if k.nodes[n.ID] != nil {
			k.wrong("doubled", "node %s is there twice", n.ID)
			continue
		}
		k.nodes[n.ID] = n
		parent := k.nodes[n.ParentID]
		switch {
		case n.ParentID == uuid.Nil && n.Depth != 0 && n.Kind == "message":
			k.wrong("shape", "root %s has depth %d", n.ID, n.Depth)
		case n.ParentID != uuid.Nil && parent == nil:
			k.wrong("shape", "node %s stands under %s, which isn't there before it", n.ID, n.ParentID)
		case parent != nil && parent.Kind != "message":
			k.wrong("shape", "node %s stands under the summary %s", n.ID, n.ParentID)
		case parent != nil && n.Depth != parent.Depth+1:
			k.wrong("shape", "node %s has depth %d, and its parent %d", n.ID, n.Depth, parent.Depth)
		}
		if n.Kind != "message" {
			continue
		}
		if m := markOf(n.Preview); m != noMark {
			if other, twice := said[m]; twice {
				k.wrong("doubled", "%v was stored as %s and as %s", m, other, n.ID)
			}
			said[m] = n.ID
		}
	}
}

// settle draws what can be known now that nothing is under way: a prune
// without an answer has happened or never will.
func (k *checker) settle() {
	for _, m := range k.c.order {
		if m.pruneSentAt.IsZero() || !m.prunedAt.IsZero() || m.state != acknowledged {
			continue
		}
		if k.nodes[m.id] == nil {
			m.prunedAt = time.Now()
		} else {
			m.pruneSentAt = time.Time{}
		}
	}
}

// stored looks at each message that is there.
func (k *checker) stored() {
	now := time.Now()
	for id, n := range k.nodes {
		if n.Kind != "message" {
			continue
		}
		m := k.c.messages[id]
		switch {
		case m == nil:
			k.wrong("invented", "message %s is there, and nobody sent it: %q", id, n.Preview)
			continue
		case m.state == refused:
			k.wrong("invented", "message %s is there, and was refused", id)
		case k.c.prunedBefore(m, now):
			k.wrong("came back", "message %s is there, and was pruned, or stood below one that was", id)
		}
		if m.parent != n.ParentID {
			k.wrong("wrong parent", "message %s stands under %s, and was sent under %s", id, n.ParentID, m.parent)
		}
		if m.role != n.Role {
			k.wrong("changed", "message %s has the role %s, and was sent as %s", id, n.Role, m.role)
		}
		k.text(m, markOf(n.Preview))
		if wrong := m.learn(n.Pinned, n.Tokens, n.CreatedAt); wrong != "" {
			k.wrong("changed", "message %s %s in the tree", id, wrong)
		}
		if m.state == unknown {
			m.state, m.ackedAt = acknowledged, now
		}
	}
}

// text checks what a message says. Of an answer that no client has seen, any
// text will do that the model gave to this head.
func (k *checker) text(m *message, got mark) {
	if m.mark != noMark {
		if got != m.mark {
			k.wrong("changed", "message %s says %v, and was sent as %v", m.id, got, m.mark)
		}
		return
	}
	parent := k.c.messages[m.parent]
	if parent != nil {
		k.marks.settle(got, parent.mark)
	}
	if said, ok := k.marks.get(got); !ok || !said.answer || parent == nil || said.parent != parent.mark {
		k.wrong("changed", "answer %s says %v, which the model didn't say to the message above", m.id, got)
		return
	}
	m.mark = got
}

// missing looks for each message that should be there.
func (k *checker) missing() {
	now := time.Now()
	chains := map[int][2]int{} // stored and not stored
	for _, m := range k.c.order {
		there := k.nodes[m.id] != nil
		pruned := k.c.prunedBefore(m, now)
		if m.state == acknowledged && !there && !pruned {
			k.wrong("lost", "message %s (%v) was acknowledged %s after the first attempt, and is lost", m.id, m.mark, m.ackedAt.Sub(m.sentAt))
		}
		if m.chain > 0 && !pruned {
			counts := chains[m.chain]
			if there {
				counts[0]++
			} else {
				counts[1]++
			}
			chains[m.chain] = counts
		}
		if m.state == unknown && !there {
			m.state = refused
		}
	}
	for _, counts := range chains {
		if counts[0] > 0 && counts[1] > 0 {
			k.wrong("torn", "of a chain of %d messages %d are stored", counts[0]+counts[1], counts[0])
		}
	}
}

// siblings checks the indexes below each parent: from 1, without gaps, in the
// order of creation as far as clients could tell it.
func (k *checker) siblings() {
	below := map[uuid.UUID][]*node{}
	for _, n := range k.nodes {
		if n.Kind == "message" {
			below[n.ParentID] = append(below[n.ParentID], n)
		} else if n.SiblingIndex != 0 {
			k.wrong("siblings", "summary %s has the sibling index %d", n.ID, n.SiblingIndex)
		}
	}
	for parent, children := range below {
		slices.SortFunc(children, func(a, b *node) int { return a.SiblingIndex - b.SiblingIndex })
		var latest *message // of those before, the one that was sent last
		for i, n := range children {
			if n.SiblingIndex != i+1 {
				k.wrong("siblings", "below %s the child number %d has the index %d", parent, i+1, n.SiblingIndex)
				break
			}
			m := k.c.messages[n.ID]
			if m == nil {
				continue
			}
			if latest != nil && m.state == acknowledged && latest.sentAt.After(m.ackedAt) {
				k.wrong("siblings", "%s was sent after %s was acknowledged, and stands before it", latest.id, m.id)
			}
			if latest == nil || m.sentAt.After(latest.sentAt) {
				latest = m
			}
		}
	}
}

// summaries checks what every summary's place promises: its cutoff and what it
// keeps lie on the path to its anchor.
func (k *checker) summaries() {
	for _, n := range k.nodes {
		if n.Kind != "summary" {
			continue
		}
		k.c.summary = n.ID
		if k.c.undone[n.ID] {
			k.wrong("came back", "summary %s is there, and was undone", n.ID)
		}
		above := map[uuid.UUID]bool{}
		for at := k.nodes[n.ParentID]; at != nil; at = k.nodes[at.ParentID] {
			above[at.ID] = true
		}
		if !above[n.Cutoff] {
			k.wrong("summary", "summary %s has the cutoff %s, which isn't above its anchor %s", n.ID, n.Cutoff, n.ParentID)
		}
		for _, id := range n.Kept {
			if !above[id] {
				k.wrong("summary", "summary %s keeps %s, which isn't above its anchor %s", n.ID, id, n.ParentID)
			}
		}
		if prior := k.nodes[n.Prior]; prior != nil && !above[prior.ParentID] {
			k.wrong("summary", "summary %s merged %s, whose anchor isn't above its own", n.ID, n.Prior)
		}
	}
}

func (k *checker) head() {
	messages := 0
	for _, n := range k.nodes {
		if n.Kind == "message" {
			messages++
		}
	}
	head := k.nodes[k.tree.HeadID]
	switch {
	case messages == 0 && k.tree.HeadID != uuid.Nil:
		k.wrong("head", "the active head is %s, and there is no message", k.tree.HeadID)
	case messages > 0 && (head == nil || head.Kind != "message"):
		k.wrong("head", "the active head %s is no message that is there", k.tree.HeadID)
	}
}
