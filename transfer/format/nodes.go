package format

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
)

// A Tally says what became of the nodes of a file: of all that stands there as a message
// or in the place of one, such as an element of a list of messages, a member of a mapping
// or a line of a log. Nodes is the sum of the others.
type Tally struct {
	Nodes   int `json:"nodes"`
	Kept    int `json:"kept"`     // of which a message came, or several
	LeftOut int `json:"left_out"` // that are not stored. Notes name each, as far as there is room for them
	Merged  int `json:"merged"`   // that are part of another node's message
	Aside   int `json:"aside"`    // that are the program's own, or hold nothing in any file of the program
}

// Add adds what became of other nodes.
func (t *Tally) Add(o Tally) {
	t.Nodes += o.Nodes
	t.Kept += o.Kept
	t.LeftOut += o.LeftOut
	t.Merged += o.Merged
	t.Aside += o.Aside
}

// A fate is what became of a node. One that stands behind another replaces it.
type fate byte

const (
	unknown fate = iota
	aside
	leftOut
	merged
	kept
)

func (c *Conversation) end(node int, with fate) {
	if node > 0 {
		c.fates[node-1] = max(c.fates[node-1], with)
	}
}

// Node begins the next node of the conversation, and reports whether to read it, as More
// does.
func (c *Conversation) Node() bool {
	if !c.More() {
		return false
	}
	c.fates = append(c.fates, unknown)
	c.at = len(c.fates)
	return true
}

// At returns the number of the node that is being read, from 1; 0 before the first.
func (c *Conversation) At() int { return c.at }

// GoTo goes on with a node that was begun before.
func (c *Conversation) GoTo(node int) { c.at = node }

// Add appends messages that the node gives. One without a body keeps its place in the tree:
// what replies to it replies to its parent.
func (c *Conversation) Add(messages ...Message) {
	for _, m := range messages {
		m.Node = cmp.Or(m.Node, c.at)
		c.Messages = append(c.Messages, m)
	}
}

// Merge says that the node is part of another's message.
func (c *Conversation) Merge() { c.end(c.at, merged) }

// Keep says that a message of the node is kept.
func (c *Conversation) Keep(node int) { c.end(node, kept) }

// Bare says that the node holds nothing, as in every file of the program.
func (c *Conversation) Bare() { c.end(c.at, aside) }

// Aside says that the node is of a sort that is the program's own. One note for each sort
// has its places.
func (c *Conversation) Aside(place, format string, args ...any) {
	c.Bare()
	c.asides.add(fmt.Sprintf(format, args...), place)
}

// Tally says what became of the nodes. Until the conversation is normalized, none is kept.
func (c *Conversation) Tally() Tally {
	var n [kept + 1]int
	for _, f := range c.fates {
		n[f]++
	}
	return Tally{Nodes: len(c.fates), Kept: n[kept], LeftOut: n[leftOut], Merged: n[merged], Aside: n[aside]}
}

// Tally says what became of the nodes that belong to no conversation.
func (in *Input) Tally() Tally { return in.tally }

// Each gives the objects in a list of nodes, with their index. It notes an element that is
// no object; noun names the elements.
func (c *Conversation) Each(list json.RawMessage, noun string) iter.Seq2[int, Object] {
	return func(yield func(int, Object) bool) {
		for i, raw := range ElementsOf(list) {
			if !c.Node() {
				return
			}
			if o := c.node(raw, fmt.Sprintf("%s %d", noun, i+1)); o != nil && !yield(i, o) {
				return
			}
		}
	}
}

// EachMember is Each of a mapping from ids to nodes.
func (c *Conversation) EachMember(mapping json.RawMessage) iter.Seq2[string, Object] {
	return func(yield func(string, Object) bool) {
		for m := range MembersOf(mapping) {
			if !c.Node() {
				return
			}
			id := KeyOf(m.Name)
			if o := c.node(m.Value, id); o != nil && !yield(id, o) {
				return
			}
		}
	}
}

// node reads a node that stands at place.
func (c *Conversation) node(raw json.RawMessage, place string) Object {
	o := ObjectOf(raw)
	if o == nil {
		c.LeftOut(KindContent, place, "the message is no object")
		return nil
	}
	c.Look(o)
	return c.Object(raw, cmp.Or(o.FirstStr(idNames...), place))
}
