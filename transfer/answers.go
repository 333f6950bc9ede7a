package transfer

import (
	"encoding/json"
	"slices"

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
		if n.role != tree.RoleTool || n.dropped {
			continue
		}
		open := openCalls(n.up)
		switch {
		case n.answers != "" && slices.Contains(open, n.answers):
		case n.answers == "" && len(open) > 0:
			n.answers = open[0]
			n.rewrite(func(body object) { body["tool_call_id"] = encode(n.answers) })
			g.c.repaired(KindTool, n.SourceID, "a tool result that names no call was taken as the answer to %s, the first open one", clip(n.answers))
		case g.moveUp(n):
			g.c.repaired(KindTool, n.SourceID, "moved up to right below its call %s; other messages stood between", clip(n.answers))
		default:
			g.makeAssistant(n)
		}
	}
}

// openCalls gives the calls that a child of n may answer, in the order they
// were made.
func openCalls(n *node) []string {
	var answered []string
	for n != nil && n.role == tree.RoleTool {
		answered = append(answered, n.answers)
		n = n.up
	}
	if n == nil {
		return nil
	}
	var open []string
	for _, id := range n.calls {
		if !slices.Contains(answered, id) {
			open = append(open, id)
		}
	}
	return open
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
		if slices.Contains(openCalls(last), n.answers) {
			break
		}
		answered := last.role == tree.RoleTool && last.answers == n.answers
		if answered || len(last.replies) != 1 || last.up == nil {
			return false
		}
		below, last = last, last.up
	}
	if below == n || !slices.Contains(openCalls(last), n.answers) {
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

// makeAssistant stores a result without a call as what the assistant said.
func (g *graph) makeAssistant(n *node) {
	n.role = tree.RoleAssistant
	n.rewrite(func(body object) {
		body["role"] = encode(n.role)
		delete(body, "tool_call_id")
	})
	body, said, _, failed := mendBody(n.Body)
	if failed != nil {
		g.drop(n, KindTool, "a tool result without a call that it could answer, and without text")
		n.splice()
		return
	}
	n.Body, n.said = body, said
	n.Metadata = addSource(n.Metadata, "role", tree.RoleTool)
	g.c.repaired(KindTool, n.SourceID, "a tool result without a call that it could answer became an assistant message")
}

// splice puts what replies to n below n's parent at once, where relink would
// only later.
func (n *node) splice() {
	for _, r := range n.replies {
		r.up = n.up
	}
	if n.up != nil {
		i := slices.Index(n.up.replies, n)
		n.up.replies = slices.Replace(n.up.replies, i, i+1, n.replies...)
	}
	n.replies = nil
}

// rewrite changes members of the body.
func (n *node) rewrite(change func(object)) {
	var body object
	if json.Unmarshal(n.Body, &body) != nil || body == nil {
		return // which mendBody has ruled out
	}
	change(body)
	n.Body = encode(map[string]json.RawMessage(body))
}

// addSource says one thing more of what the message was in its program, if
// sound metadata has room for it.
func addSource(metadata json.RawMessage, name string, value any) json.RawMessage {
	all := objectOf(metadata)
	if all == nil {
		all = object{}
	}
	from := all.object("source")
	if from == nil {
		from = object{}
	}
	from[name] = encode(value)
	all["source"] = encode(map[string]json.RawMessage(from))
	if raw := encode(map[string]json.RawMessage(all)); len(raw) <= tree.MaxMetadataBytes {
		return raw
	}
	return metadata
}
