package bench

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// A History is a conversation's tree as it grew: its messages in the order in
// which they were said, a parent before its children.
type History []Node

// A Node is a message of a History, without its text.
type Node struct {
	Parent int // index in the History; -1 for a root
	Role   tree.Role
	Tokens int // that it costs in a context
	Calls  int // tools that it calls
	Pinned bool
}

// newHistory orders an imported conversation by time. Where the source gives
// the same time to several messages, or none at all, one branch is told to its
// end and then the next, siblings in their order: as one person would have made
// the tree.
//
// Leading system messages are left out. They are never folded, so they are the
// same under every rule.
func newHistory(b tree.Bundle, count tokens.Counter) History {
	messages := make(map[uuid.UUID]*chat.Message, len(b.Nodes))
	children := map[uuid.UUID][]tree.BundleNode{}
	for _, n := range b.Nodes {
		if n.Summary == nil {
			messages[n.ID] = chat.Read(n.Body)
			children[n.ParentID] = append(children[n.ParentID], n)
		}
	}
	type placed struct {
		tree.BundleNode
		said time.Time // no earlier than the parent
	}
	var order []placed
	waiting := []placed{}
	push := func(parent placed) {
		for _, n := range slices.Backward(children[parent.ID]) {
			said := n.CreatedAt
			if said.Before(parent.said) {
				said = parent.said
			}
			waiting = append(waiting, placed{n, said})
		}
	}
	for push(placed{}); len(waiting) > 0; {
		next := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		order = append(order, next)
		push(next)
	}
	slices.SortStableFunc(order, func(a, b placed) int { return a.said.Compare(b.said) })

	h := make(History, 0, len(order))
	at := map[uuid.UUID]int{uuid.Nil: -1}
	for _, n := range order {
		m, parent := messages[n.ID], at[n.ParentID]
		if parent < 0 && (m.Role == tree.RoleSystem || m.Role == tree.RoleDeveloper) {
			at[n.ID] = -1
			continue
		}
		at[n.ID] = len(h)
		h = append(h, Node{Parent: parent, Role: m.Role, Tokens: cost(m, count), Calls: len(m.Calls), Pinned: n.Pinned})
	}
	return h
}

// forks counts the messages that were said where another had been said before.
func (h History) forks() (n int) {
	replies := map[int]int{}
	for _, m := range h {
		if replies[m.Parent]++; replies[m.Parent] > 1 {
			n++
		}
	}
	return n
}

// longest is the tokens of the longest branch.
func (h History) longest() int {
	if len(h) == 0 {
		return 0
	}
	sums := make([]int, len(h))
	for i, m := range h {
		sums[i] = m.Tokens
		if m.Parent >= 0 {
			sums[i] += sums[m.Parent]
		}
	}
	return slices.Max(sums)
}

// framing is what a message or a call costs besides its text.
const framing = 3

// cost is near enough to what the store would count; the store itself needs a
// database.
func cost(m *chat.Message, count tokens.Counter) int {
	n := framing
	for _, p := range m.Parts {
		n += count.Count(p.Text)
	}
	for _, c := range m.Calls {
		n += framing + count.Count(c.Name) + count.Count(c.Arguments)
	}
	return n
}
