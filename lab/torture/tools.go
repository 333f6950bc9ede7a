package torture

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// useTools has an agent work: an assistant's calls and their results, several
// rounds in one turn. Now and then a call stays without its result.
func (w *writer) useTools(ctx context.Context, c *conversation, standing []*message) bool {
	parent := w.tip(c, standing)
	c.mu.Lock()
	path := c.path(parent.id)
	c.mu.Unlock()
	if open := openCalls(path); len(open) > 0 {
		m := w.newMessage(parent.id, parent.mark, "tool")
		m.answers = open[w.rng.IntN(len(open))].ID
		w.appendMessage(ctx, c, "tool result", m)
		return true
	}
	var ms []*message
	id, above := parent.id, parent.mark
	say := func(role string) *message {
		m := w.newMessage(id, above, role)
		ms = append(ms, m)
		id, above = m.id, m.mark
		return m
	}
	if parent.role == "assistant" {
		say("user")
	}
	for range 1 + w.rng.IntN(5) {
		caller := say("assistant")
		for range 1 + w.rng.IntN(3) {
			n := w.rng.IntN(1 << 30)
			caller.calls = append(caller.calls, call{fmt.Sprintf("call_%08x", n), "measure", fmt.Sprintf(`{"stool": %d}`, n%40)})
		}
		for _, i := range w.rng.Perm(len(caller.calls)) {
			say("tool").answers = caller.calls[i].ID
		}
	}
	switch w.rng.IntN(4) {
	case 0: // the last result is yet to come, or never does
		ms = ms[:len(ms)-1]
	case 1:
	default:
		say("assistant")
	}
	w.appendMessages(ctx, c, "tool calls", ms)
	return true
}

// openCalls gives the calls at the end of a path that have no result.
func openCalls(path []*message) (open []call) {
	answered := map[string]bool{}
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].role == "tool" {
			answered[path[i].answers] = true
			continue
		}
		for _, c := range path[i].calls {
			if !answered[c.ID] {
				open = append(open, c)
			}
		}
		break
	}
	return open
}

// orphaned gives the calls of a path that stay without a result, because the
// branch went on before: those that a context has to make up for.
func orphaned(path []*message) map[uuid.UUID][]call {
	found := map[uuid.UUID][]call{}
	for i, m := range path {
		if m.role == "tool" || i == 0 || path[i-1].role != "tool" && len(path[i-1].calls) == 0 {
			continue
		}
		for caller := i - 1; caller >= 0; caller-- {
			if path[caller].role != "tool" {
				if open := openCalls(path[:i]); len(open) > 0 {
					found[path[caller].id] = open
				}
				break
			}
		}
	}
	return found
}
