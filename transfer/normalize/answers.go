package normalize

import (
	"fmt"
	"slices"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// maxReach is how many messages above a tool result its call is looked for.
const maxReach = 100

// pairAnswers sees to it that every tool result stands where the store, and
// every provider, wants it: right below the assistant message that made the
// call, with nothing but results of its other calls between, each call
// answered once. A result that stands elsewhere is moved up to its call where
// no other branch would notice; else it becomes an assistant message, so that
// its text stays where it was.
//
// It wants the nodes parents first, and may leave them in another order.
func (g *graph) pairAnswers() {
	for _, n := range g.nodes {
		if !g.c.More() {
			return
		}
		if n.role != tree.RoleTool || n.dropped {
			continue
		}
		switch {
		case n.answers != "" && g.isOpen(n.up, n.answers):
		case g.moveUp(n):
			g.c.Repaired(format.KindTool, n.SourceID, "moved up to right below its call %s; other messages stood between", format.Clip(n.answers))
		case g.takeOpen(n):
		default:
			g.makeAssistant(n)
		}
	}
}

// takeOpen takes a result that names no call, or none that is open above it, as the
// answer to the first open call that no result behind it names.
func (g *graph) takeOpen(n *node) bool {
	which := "names no call"
	if n.answers != "" {
		which = "answers " + format.Clip(n.answers) + ", a call which is not open above it,"
	}
	caller, named := g.caller(n.up), map[string]bool{}
	if caller == nil || slices.Contains(caller.calls, n.answers) { // answered already
		return false
	}
	for up := n.up; up != caller; up = up.up {
		named[up.answers] = true
	}
	for below := n; len(below.replies) == 1 && below.replies[0].role == tree.RoleTool && g.c.Steps(1); {
		below = below.replies[0]
		named[below.answers] = true
	}
	i := slices.IndexFunc(caller.calls, func(call string) bool { return !named[call] && g.c.Steps(len(call)) }) // the result gets a copy
	if i < 0 {
		return false
	}
	n.answers = caller.calls[i]
	n.rewrite(func(body format.Object) { body["tool_call_id"] = chat.MustMarshal(n.answers) })
	g.c.Repaired(format.KindTool, n.SourceID, "a tool result that %s was taken as the answer to %s, the first open one", which, format.Clip(n.answers))
	return true
}

// caller is the message above the results of which n may be one; nil for none, and
// where the conversation takes too many steps.
func (g *graph) caller(n *node) *node {
	for n != nil && n.role == tree.RoleTool {
		if !g.c.Steps(1) {
			return nil
		}
		n = n.up
	}
	if n != nil && !g.c.Steps(len(n.calls)) {
		return nil
	}
	return n
}

// isOpen tells whether a child of n may answer the call. It takes no memory:
// a message of a megabyte may make thousands of calls.
func (g *graph) isOpen(n *node, call string) bool {
	caller := g.caller(n)
	if caller == nil {
		return false
	}
	for ; n != caller; n = n.up {
		if n.answers == call {
			return false
		}
	}
	return slices.Contains(caller.calls, call)
}

// moveUp looks above n for the message that made the call which n answers, and
// puts n below it and the results that follow it. Everything between must lie
// on n's branch alone: on another branch the result would be news.
func (g *graph) moveUp(n *node) bool {
	if n.answers == "" || n.up == nil {
		return false
	}
	below, last := n, n.up // last is above below on the path
	for range maxReach {
		if g.isOpen(last, n.answers) {
			break
		}
		answered := last.role == tree.RoleTool && last.answers == n.answers
		if answered || len(last.replies) != 1 || last.up == nil {
			return false
		}
		below, last = last, last.up
	}
	if below == n || !g.isOpen(last, n.answers) {
		return false
	}
	was := n.up
	n.up, below.up = last, n
	last.replies[slices.Index(last.replies, below)] = n
	was.replies = n.replies
	for _, r := range was.replies {
		r.up = was
	}
	n.replies = []*node{below}
	return true
}

// makeAssistant stores a result without a call as what the assistant said. It
// can't stay a tool's, which no provider takes without its call. It doesn't
// become the user's, whose words count for more. And no call is made up for it:
// the tree holds only what was said.
func (g *graph) makeAssistant(n *node) {
	which := "a tool result that names no call, where none is open,"
	if n.answers != "" {
		which = fmt.Sprintf("a tool result that answers %s, a call which is not open above it,", format.Clip(n.answers))
	}
	n.role = tree.RoleAssistant
	n.rewrite(func(body format.Object) {
		body["role"] = chat.MustMarshal(n.role)
		delete(body, "tool_call_id")
	})
	body, info, _, failed := normalizeBody(n.Body, false)
	if failed != nil {
		g.drop(n, format.KindTool, which+" and has no text")
		g.splice(n)
		return
	}
	n.Body, n.messageInfo = body, info
	n.Metadata = format.AddSource(n.Metadata, "role", tree.RoleTool)
	g.c.Repaired(format.KindTool, n.SourceID, "%s became an assistant message", which)
}

// splice puts what replies to n below n's parent at once, where relink would
// only later.
func (g *graph) splice(n *node) {
	for _, r := range n.replies {
		r.up = n.up
	}
	if n.up != nil && g.c.Steps(len(n.up.replies)) {
		i := slices.Index(n.up.replies, n)
		n.up.replies = slices.Replace(n.up.replies, i, i+1, n.replies...)
	}
	n.replies = nil
}

// rewrite changes members of the body.
func (n *node) rewrite(change func(format.Object)) {
	body := format.ObjectUpTo(n.Body, len(n.Body)) // valid, as normalizeBody saw to it
	change(body)
	n.Body = format.EncodeObject(body)
}
