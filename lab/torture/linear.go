package torture

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A historyKind is what an operation of a history does.
type historyKind int

const (
	historyAppend historyKind = iota
	historyMoveHead
	historyPrune
	historyReadHead
	historyReadNodes
)

// A historyInput is what an operation of a history asks for. Nodes are numbers.
type historyInput struct {
	kind historyKind
	node int
	move bool // append: the message becomes the active head
}

// A historyOutput is what came of it.
type historyOutput struct {
	outcome outcome // refused: what it needs isn't there; unknown: it happened within its time, or didn't
	again   bool    // prune: refused, but only after an attempt without an answer
	pruned  int     // messages that a prune says to have deleted
	head    int     // after a prune, or as read; noNode for none
	nodes   nodeSet // as read
}

// noNode is the parent of roots, and the head of a conversation without
// messages.
const noNode = -1

// A nodeSet is a set of nodes: a bit each, in a string so that sets compare.
type nodeSet string

func (s nodeSet) has(n int) bool {
	return n >= 0 && n/8 < len(s) && s[n/8]&(1<<(n%8)) != 0
}

// with gives the set with nodes added, or taken away.
func (s nodeSet) with(there bool, nodes ...int) nodeSet {
	b := []byte(s)
	for _, n := range nodes {
		for len(b) <= n/8 {
			b = append(b, 0)
		}
		if there {
			b[n/8] |= 1 << (n % 8)
		} else {
			b[n/8] &^= 1 << (n % 8)
		}
	}
	for len(b) > 0 && b[len(b)-1] == 0 { // one spelling for each set
		b = b[:len(b)-1]
	}
	return nodeSet(b)
}

// A historyState is a conversation, as far as histories tell.
type historyState struct {
	nodes nodeSet
	head  int
}

// A shape says what stands under what: of each node its parent. Nodes of a
// history never change their parent, whether they are there or not.
type shape []int

// below gives the nodes of a subtree that are there.
func (s shape) below(top int, nodes nodeSet) (found []int) {
	for n := range s {
		for at := n; at != noNode; at = s[at] {
			if at == top {
				if nodes.has(n) {
					found = append(found, n)
				}
				break
			}
		}
	}
	return found
}

// landings are where the active head may go when a node is pruned: to a leaf
// below its parent, or of the whole tree where it is a root. Which one depends
// on the time of day, which a history doesn't have.
func (s shape) landings(pruned int, nodes nodeSet) (leaves []int) {
	parents := map[int]bool{}
	for n, parent := range s {
		if nodes.has(n) {
			parents[parent] = true
		}
	}
	for n := range s {
		if !nodes.has(n) || parents[n] {
			continue
		}
		if s[pruned] == noNode || contains(s.below(s[pruned], nodes), n) {
			leaves = append(leaves, n)
		}
	}
	if len(leaves) == 0 {
		return []int{noNode}
	}
	return leaves
}

func contains(all []int, n int) bool {
	for _, m := range all {
		if m == n {
			return true
		}
	}
	return false
}

// prune gives the states that a prune may lead to, and how many messages go.
func (s shape) prune(before historyState, node int) (after []historyState, deleted int) {
	doomed := s.below(node, before.nodes)
	nodes := before.nodes.with(false, doomed...)
	if !contains(doomed, before.head) {
		return []historyState{{nodes, before.head}}, len(doomed)
	}
	for _, leaf := range s.landings(node, nodes) {
		after = append(after, historyState{nodes, leaf})
	}
	return after, len(doomed)
}

// step gives the states that an operation may lead to, none where its outcome
// can't be.
func (s shape) step(before historyState, in historyInput, out historyOutput) (after []historyState) {
	same := []historyState{before}
	switch in.kind {
	case historyReadHead:
		if out.head == before.head {
			return same
		}
		return nil
	case historyReadNodes:
		if out.nodes == before.nodes {
			return same
		}
		return nil
	}
	possible, done := false, same
	switch in.kind {
	case historyAppend:
		parent := s[in.node]
		possible = (parent == noNode || before.nodes.has(parent)) && !before.nodes.has(in.node)
		if possible {
			next := historyState{before.nodes.with(true, in.node), before.head}
			if in.move {
				next.head = in.node
			}
			done = []historyState{next}
		} else if before.nodes.has(in.node) {
			return nil // it is stored once only
		}
	case historyMoveHead:
		if possible = before.nodes.has(in.node); possible {
			done = []historyState{{before.nodes, in.node}}
		}
	case historyPrune:
		if possible = before.nodes.has(in.node); possible {
			var deleted int
			done, deleted = s.prune(before, in.node)
			if out.outcome == acknowledged {
				return answeredPrune(done, deleted, out)
			}
		}
	}
	switch {
	case out.outcome == unknown && possible:
		return append(same, done...)
	case out.outcome == unknown:
		return same
	case out.outcome == refused && out.again && possible:
		return done // by the attempt without an answer
	case out.outcome == refused && !possible:
		return same
	case out.outcome == acknowledged && possible:
		return done
	}
	return nil
}

// answeredPrune leaves those of a prune's states that fit its answer.
func answeredPrune(after []historyState, deleted int, out historyOutput) (fit []historyState) {
	if deleted != out.pruned {
		return nil
	}
	for _, state := range after {
		if state.head == out.head {
			fit = append(fit, state)
		}
	}
	return fit
}

// model is what a history is checked against, from its first states on.
func (s shape) model(initial historyState) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{initial} },
		Step: func(state, in, out any) (after []any) {
			for _, next := range s.step(state.(historyState), in.(historyInput), out.(historyOutput)) {
				after = append(after, next)
			}
			return after
		},
		DescribeOperation: func(in, out any) string { return describe(s, in.(historyInput), out.(historyOutput)) },
	}
	return m.ToModel()
}

func describe(s shape, in historyInput, out historyOutput) string {
	switch in.kind {
	case historyAppend:
		return fmt.Sprintf("append %d under %d, move head %v: %v", in.node, s[in.node], in.move, out.outcome)
	case historyMoveHead:
		return fmt.Sprintf("move head to %d: %v", in.node, out.outcome)
	case historyPrune:
		return fmt.Sprintf("prune %d: %v, %d deleted, head %d", in.node, out.outcome, out.pruned, out.head)
	case historyReadHead:
		return fmt.Sprintf("head is %d", out.head)
	}
	var b strings.Builder
	for n := range s {
		if out.nodes.has(n) {
			fmt.Fprintf(&b, " %d", n)
		}
	}
	return "nodes are" + b.String()
}

// linearTimeout is how long one history may be searched for an order.
const linearTimeout = 30 * time.Second

// linearizable tells whether the operations have an order, that of their times
// where those tell it, in which each comes out as it did.
func (s shape) linearizable(initial historyState, ops []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(s.model(initial), ops, linearTimeout)
}

// broken gives the last operations of the shortest beginning of a history that
// has no order.
func (s shape) broken(initial historyState, ops []porcupine.Operation) []porcupine.Operation {
	const shown = 20
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Return - b.Return) })
	n := sort.Search(len(ops), func(n int) bool {
		return s.linearizable(initial, beginning(ops, n+1)) == porcupine.Illegal
	})
	n = min(n+1, len(ops))
	return ops[max(0, n-shown):n]
}

// beginning gives the n operations that ended first, and those that had begun
// until then, which may have happened.
func beginning(ops []porcupine.Operation, n int) []porcupine.Operation {
	begun := slices.Clone(ops[:n])
	end := ops[n-1].Return
	for _, op := range ops[n:] {
		kind := op.Input.(historyInput).kind
		if op.Call > end || kind == historyReadHead || kind == historyReadNodes {
			continue
		}
		op.Return, op.Output = end+1, historyOutput{outcome: unknown}
		begun = append(begun, op)
	}
	return begun
}
