package normalize

import (
	"bytes"
	"container/heap"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// A graph is a source conversation while it is made a tree. Nothing in it
// recurses: a conversation may be one line of a million messages.
type graph struct {
	c     *format.Conversation
	names []string // source ids of the bundle's nodes
	nodes []*node
	byID  map[string]*node // dropped ones too: a head may name one
}

type node struct {
	format.Message
	messageInfo
	at      int // in the file
	up      *node
	replies []*node // and summaries anchored here
	dropped bool
	waiting bool // for its parent, while cycles are looked for
	id      uuid.UUID

	// Of a walk through the tree that passes a node before what is below it: when
	// it came to the node, from 1, and when to the last one below.
	begins, ends int
}

// newGraph takes the messages in. An id that came before is left out.
func newGraph(c *format.Conversation) *graph {
	g := &graph{c: c, byID: make(map[string]*node, len(c.Messages)), nodes: make([]*node, 0, len(c.Messages))}
	all := make([]node, len(c.Messages))
	for i, m := range c.Messages {
		if m.SourceID == "" {
			m.SourceID = fmt.Sprintf("#%d", i+1)
		}
		if first, there := g.byID[m.SourceID]; there {
			c.GoTo(m.Node)
			if first.ParentID == m.ParentID && bytes.Equal(first.Body, m.Body) {
				c.LeftOut(format.KindDuplicate, m.SourceID, "the same message stands there twice")
			} else {
				c.LeftOut(format.KindDuplicate, m.SourceID, "another message with this id stands before it")
			}
			continue
		}
		n := &all[i]
		n.Message, n.at = m, i
		g.byID[m.SourceID] = n
		g.nodes = append(g.nodes, n)
	}
	return g
}

// link finds each node's parent. One whose parent isn't there becomes a root,
// and one below a summary goes to the message that the summary is anchored at.
func (g *graph) link() {
	for _, n := range g.nodes {
		if n.ParentID == "" {
			continue
		}
		up, there := g.byID[n.ParentID]
		switch {
		case !there:
			g.c.Repaired(format.KindOrphan, n.SourceID, "its parent %s is not there; it became a root", format.Clip(n.ParentID))
			continue
		case up.Summary != nil:
			g.c.Repaired(format.KindOrphan, n.SourceID, "its parent %s is a summary; it went to the message where that is anchored", format.Clip(n.ParentID))
			if up, there = g.byID[up.ParentID]; !there || up.Summary != nil {
				continue
			}
		}
		n.up = up
	}
	g.countReplies()
}

func (g *graph) countReplies() {
	for _, n := range g.nodes {
		n.replies = n.replies[:0]
	}
	for _, n := range g.nodes {
		if n.up != nil {
			n.up.replies = append(n.up.replies, n)
		}
	}
}

// breakCycles makes the first message of each cycle a root, and orders the
// nodes so that a parent comes before its children.
func (g *graph) breakCycles() {
	ordered := make([]*node, 0, len(g.nodes))
	for _, n := range g.nodes {
		n.waiting = true
		if n.up == nil {
			n.waiting = false
			ordered = append(ordered, n)
		}
	}
	next := 0
	follow := func() {
		for ; next < len(ordered); next++ {
			for _, r := range ordered[next].replies {
				if r.waiting {
					r.waiting = false
					ordered = append(ordered, r)
				}
			}
		}
	}
	follow()
	// What still waits is on a cycle or hangs from one.
	for _, n := range g.nodes {
		if !n.waiting {
			continue
		}
		root := firstOfCycle(n)
		g.c.Repaired(format.KindCycle, root.SourceID, "its parent %s is also below it; it became a root", format.Clip(root.ParentID))
		root.up = nil
		root.waiting = false
		ordered = append(ordered, root)
		follow()
	}
	g.nodes = ordered
	g.countReplies()
}

// firstOfCycle walks up from n, which has no root above it, and gives the
// node of the cycle there that stands first in the file.
func firstOfCycle(n *node) *node {
	seen := map[*node]bool{}
	for ; !seen[n]; n = n.up {
		seen[n] = true
	}
	first := n
	for m := n.up; m != n; m = m.up {
		if m.at < first.at {
			first = m
		}
	}
	return first
}

// isLeaf tells whether the node is a message that no message replies to.
func (n *node) isLeaf() bool {
	return n.Summary == nil && !slices.ContainsFunc(n.replies, func(r *node) bool { return r.Summary == nil })
}

// relink takes the dropped nodes out. What replied to one replies to its
// parent then. It needs the nodes in parents-first order, and keeps that.
func (g *graph) relink() {
	kept := g.nodes[:0]
	for _, n := range g.nodes {
		if n.up != nil && n.up.dropped {
			n.up = n.up.up // which is not dropped: its own parent was looked at before
		}
		if n.Summary != nil && n.up == nil && !n.dropped {
			g.drop(n, format.KindOrphan, "a summary needs a message to be anchored at")
		}
		if !n.dropped {
			kept = append(kept, n)
		}
	}
	clear(g.nodes[len(kept):])
	g.nodes = kept
	g.countReplies()
}

// sort orders the nodes as they would have been appended: by time where the
// tree allows, a parent always before its children, and as in the file where
// times are equal.
//
// Coppice's own files are in order: siblings stand by index, which need not be
// the order of the times that clients gave them.
func (g *graph) sort() {
	ready := &byTime{inOrder: g.c.OwnIDs}
	for _, n := range g.nodes {
		if n.up == nil {
			ready.nodes = append(ready.nodes, n)
		}
	}
	heap.Init(ready)
	g.nodes = g.nodes[:0]
	for ready.Len() > 0 {
		n := heap.Pop(ready).(*node)
		g.nodes = append(g.nodes, n)
		for _, r := range n.replies {
			heap.Push(ready, r)
		}
	}
	g.countReplies()
}

// byTime is a heap of nodes, earliest first.
type byTime struct {
	nodes   []*node
	inOrder bool // by their place in the file alone
}

func (h *byTime) Len() int { return len(h.nodes) }

func (h *byTime) Swap(i, j int) { h.nodes[i], h.nodes[j] = h.nodes[j], h.nodes[i] }

func (h *byTime) Less(i, j int) bool {
	a, b := h.nodes[i], h.nodes[j]
	if !h.inOrder && !a.CreatedAt.Equal(b.CreatedAt) {
		return a.CreatedAt.Before(b.CreatedAt)
	}
	return a.at < b.at
}

func (h *byTime) Push(x any) { h.nodes = append(h.nodes, x.(*node)) }

func (h *byTime) Pop() any {
	last := h.nodes[len(h.nodes)-1]
	h.nodes = h.nodes[:len(h.nodes)-1]
	return last
}

// bundle writes the nodes: messages first, then the summaries, whose cutoffs
// and kept messages must be there before them.
func (g *graph) bundle(conversation uuid.UUID) []tree.BundleNode {
	out := make([]tree.BundleNode, 0, len(g.nodes))
	g.names = make([]string, 0, len(g.nodes))
	for _, n := range g.nodes {
		n.id = messageID(g.c, conversation, n.SourceID)
		if n.Summary == nil {
			out, g.names = append(out, n.bundle()), append(g.names, n.SourceID)
			g.c.Keep(n.Node)
		}
	}
	if len(out) == len(g.nodes) {
		return out
	}
	g.walk()
	for _, n := range g.nodes {
		if n.Summary == nil {
			continue
		}
		if !g.c.More() {
			break
		}
		if r := g.summaryRange(n, conversation); r != nil {
			b := n.bundle()
			b.Summary = r
			out, g.names = append(out, b), append(g.names, n.SourceID)
			g.c.Keep(n.Node)
		}
	}
	return out
}

func (n *node) bundle() tree.BundleNode {
	return tree.BundleNode{
		ID: n.id, ParentID: messageIDOf(n.up), Body: n.Body, Reasoning: n.Reasoning, Metadata: n.Metadata, Pinned: n.Pinned, Annotation: n.Annotation, Graft: n.Graft, CreatedAt: n.CreatedAt,
	}
}

// walk numbers the nodes, which stand parents first, so that isAbove needs no walk
// from a node to its root.
func (g *graph) walk() {
	next := 1
	waiting := make([]*node, 0, len(g.nodes))
	for _, n := range slices.Backward(g.nodes) {
		if n.up == nil {
			waiting = append(waiting, n)
		}
	}
	for len(waiting) > 0 {
		n := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		n.begins, n.ends = next, next
		next++
		waiting = append(waiting, n.replies...)
	}
	for _, n := range slices.Backward(g.nodes) {
		if n.up != nil {
			n.up.ends = max(n.up.ends, n.ends)
		}
	}
}

// isAbove tells whether the node is an ancestor of n. A node that was dropped is of
// none.
func (n *node) isAbove(below *node) bool {
	return n != below && n.begins > 0 && n.begins <= below.begins && below.begins <= n.ends
}

// summaryRange resolves what a summary says of others; nil where it isn't
// sound, and the summary is left out.
func (g *graph) summaryRange(n *node, conversation uuid.UUID) *tree.SummaryRange {
	above := func(id string) *node {
		if m := g.byID[id]; m != nil && m.isAbove(n) {
			return m
		}
		return nil
	}
	cutoff := above(n.Summary.LastSummarizedID)
	g.c.GoTo(n.Node)
	if cutoff == nil {
		g.c.LeftOut(format.KindOrphan, n.SourceID, "the summary's cutoff %s is not on the branch that it is anchored at", format.Clip(n.Summary.LastSummarizedID))
		return nil
	}
	r := &tree.SummaryRange{LastSummarizedID: cutoff.id, KeptIDs: []uuid.UUID{}, Model: n.Summary.Model, Origin: n.Summary.Origin}
	if prior := n.Summary.PriorSummaryID; prior != "" {
		r.PriorSummaryID = messageID(g.c, conversation, prior) // it may have been undone, and stays named
	}
	for _, id := range n.Summary.KeptIDs {
		if kept := above(id); kept != nil {
			r.KeptIDs = append(r.KeptIDs, kept.id)
		} else {
			g.c.Repaired(format.KindOrphan, n.SourceID, "the summary keeps %s, which is not on its branch and was taken off its list", format.Clip(id))
		}
	}
	return r
}

// messageID derives the id of a message of the conversation.
func messageID(c *format.Conversation, conversation uuid.UUID, sourceID string) uuid.UUID {
	if c.OwnIDs {
		if id, err := uuid.Parse(sourceID); err == nil {
			return id
		}
	}
	return uuid.NewSHA1(conversation, []byte(sourceID))
}
