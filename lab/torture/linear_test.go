package torture

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// A historyScript writes a history down: each operation begins and ends where
// it says.
type historyScript []porcupine.Operation

func (h *historyScript) op(call, end int64, in historyInput, out historyOutput) {
	*h = append(*h, porcupine.Operation{ClientId: len(*h), Input: in, Output: out, Call: call, Return: end})
}

var (
	taken   = historyOutput{outcome: acknowledged}
	noPlace = historyOutput{outcome: refused}
	open    = historyOutput{outcome: unknown}
)

func appendOf(n int) historyInput { return historyInput{kind: historyAppend, node: n} }
func appendTo(n int) historyInput { return historyInput{kind: historyAppend, node: n, move: true} }
func moveTo(n int) historyInput   { return historyInput{kind: historyMoveHead, node: n} }
func pruneOf(n int) historyInput  { return historyInput{kind: historyPrune, node: n} }
func headIs(n int) historyOutput  { return historyOutput{outcome: acknowledged, head: n} }
func nodesAre(n ...int) historyOutput {
	return historyOutput{outcome: acknowledged, nodes: nodeSet("").with(true, n...)}
}
func prunedAs(messages, head int) historyOutput {
	return historyOutput{outcome: acknowledged, pruned: messages, head: head}
}

var (
	readHead  = historyInput{kind: historyReadHead}
	readNodes = historyInput{kind: historyReadNodes}
)

// The nodes of these histories: 1 and 2 stand below 0, 3 below 1, 4 below 3.
var family = shape{noNode, 0, 0, 1, 3}

func TestLinearizable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		history func(h *historyScript)
		want    porcupine.CheckResult
	}{
		{"one after the other", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendTo(1), taken)
			h.op(5, 6, readHead, headIs(1))
			h.op(7, 8, appendOf(2), taken)
			h.op(9, 10, readHead, headIs(1))
			h.op(11, 12, moveTo(2), taken)
			h.op(13, 14, readNodes, nodesAre(0, 1, 2))
			h.op(15, 16, pruneOf(1), prunedAs(1, 2))
			h.op(17, 18, readNodes, nodesAre(0, 2))
		}, porcupine.Ok},
		{"an acknowledged append is lost", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendTo(1), taken)
			h.op(5, 6, readNodes, nodesAre(0))
		}, porcupine.Illegal},
		{"a read sees an append that another read after it doesn't", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 20, appendTo(1), taken)
			h.op(4, 5, readNodes, nodesAre(0, 1))
			h.op(6, 7, readNodes, nodesAre(0))
		}, porcupine.Illegal},
		{"two reads at once that see an append, and not yet", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 20, appendTo(1), taken)
			h.op(4, 10, readNodes, nodesAre(0, 1))
			h.op(5, 9, readNodes, nodesAre(0))
		}, porcupine.Ok},
		{"an append below what was pruned", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendTo(1), taken)
			h.op(5, 6, pruneOf(1), prunedAs(1, 0))
			h.op(7, 8, appendTo(3), taken)
		}, porcupine.Illegal},
		{"an append below what is being pruned, before it", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendTo(1), taken)
			h.op(5, 10, pruneOf(1), prunedAs(2, 0))
			h.op(6, 9, appendTo(3), taken)
			h.op(11, 12, readNodes, nodesAre(0))
		}, porcupine.Ok},
		{"the prune counts a message too few", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendTo(1), taken)
			h.op(5, 6, appendTo(3), taken)
			h.op(7, 8, pruneOf(1), prunedAs(1, 0))
		}, porcupine.Illegal},
		{"an append is refused although its parent is there", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendTo(1), noPlace)
		}, porcupine.Illegal},
		{"an append is refused because a prune came first", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendTo(1), taken)
			h.op(5, 10, pruneOf(1), prunedAs(1, 0))
			h.op(6, 9, appendTo(3), noPlace)
		}, porcupine.Ok},
		{"the active head is one that was moved away from", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendOf(1), taken)
			h.op(5, 6, moveTo(1), taken)
			h.op(7, 8, readHead, headIs(0))
		}, porcupine.Illegal},
		{"two moves at once, and the head is either", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendOf(1), taken)
			h.op(5, 6, appendOf(2), taken)
			h.op(7, 10, moveTo(1), taken)
			h.op(7, 10, moveTo(2), taken)
			h.op(11, 12, readHead, headIs(1))
		}, porcupine.Ok},
		{"two moves at once, and the head is both in turn", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendOf(1), taken)
			h.op(5, 6, appendOf(2), taken)
			h.op(7, 10, moveTo(1), taken)
			h.op(7, 10, moveTo(2), taken)
			h.op(11, 12, readHead, headIs(1))
			h.op(13, 14, readHead, headIs(2))
		}, porcupine.Illegal},
		{"the active head is moved to what was pruned", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendOf(1), taken)
			h.op(5, 6, pruneOf(1), prunedAs(1, 0))
			h.op(7, 8, moveTo(1), taken)
		}, porcupine.Illegal},
		{"the active head stays on what is pruned", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendTo(1), taken)
			h.op(5, 6, pruneOf(1), prunedAs(1, 1))
		}, porcupine.Illegal},
		{"it lands on a leaf", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendOf(2), taken)
			h.op(5, 6, appendTo(1), taken)
			h.op(7, 8, appendTo(3), taken)
			h.op(9, 10, pruneOf(1), prunedAs(2, 2))
		}, porcupine.Ok},
		{"it lands on a message that is no leaf", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendOf(2), taken)
			h.op(5, 6, appendTo(1), taken)
			h.op(7, 8, appendTo(3), taken)
			h.op(9, 10, pruneOf(1), prunedAs(2, 0))
		}, porcupine.Illegal},
		{"an append without an answer happened", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 99, appendTo(1), open)
			h.op(4, 5, readHead, headIs(0))
			h.op(6, 7, readNodes, nodesAre(0, 1))
			h.op(8, 9, appendOf(3), taken)
		}, porcupine.Ok},
		{"an append without an answer didn't", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 99, appendTo(1), open)
			h.op(100, 101, readNodes, nodesAre(0))
		}, porcupine.Ok},
		{"an append without an answer came and went", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 99, appendTo(1), open)
			h.op(4, 5, readNodes, nodesAre(0, 1))
			h.op(100, 101, readNodes, nodesAre(0))
		}, porcupine.Illegal},
		{"a prune without an answer took half", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendTo(1), taken)
			h.op(5, 6, appendTo(3), taken)
			h.op(7, 99, pruneOf(1), open)
			h.op(100, 101, readNodes, nodesAre(0, 1))
		}, porcupine.Illegal},
		{"a second attempt to prune found nothing", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendTo(1), taken)
			h.op(5, 6, pruneOf(1), historyOutput{outcome: refused, again: true})
			h.op(7, 8, readNodes, nodesAre(0))
		}, porcupine.Ok},
		{"a first attempt to prune found nothing", func(h *historyScript) {
			h.op(1, 2, appendTo(0), taken)
			h.op(3, 4, appendTo(1), taken)
			h.op(5, 6, pruneOf(1), noPlace)
		}, porcupine.Illegal},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var h historyScript
			test.history(&h)
			if got := family.linearizable(historyState{head: noNode}, h); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestNodeSet(t *testing.T) {
	t.Parallel()
	s := nodeSet("").with(true, 3, 17)
	if !s.has(3) || !s.has(17) || s.has(4) || s.has(90) || s.has(noNode) {
		t.Errorf("%q", s)
	}
	if s.with(false, 17) != nodeSet("").with(true, 3) || s.with(false, 3, 17) != "" {
		t.Error("equal sets are spelled differently")
	}
}

// A history of which a part is wrong is cut down to where that shows.
func TestBroken(t *testing.T) {
	t.Parallel()
	var h historyScript
	h.op(1, 2, appendTo(0), taken)
	h.op(3, 4, appendTo(1), taken)
	h.op(5, 6, readNodes, nodesAre(0))
	h.op(7, 8, readNodes, nodesAre(0, 1))
	h.op(9, 12, appendOf(2), taken)
	got := family.broken(historyState{head: noNode}, h)
	if len(got) != 3 || got[2].Call != 5 {
		t.Errorf("got %+v", got)
	}
}

// Summaries are no part of a history.
func TestHistoryWithSummaries(t *testing.T) {
	t.Parallel()
	s := newScene()
	h := newHistory(s.c, s.tree)
	if len(h.ids) != 6 || h.initial.head != h.number(s.id["a2"]) {
		t.Errorf("%d nodes, head %d", len(h.ids), h.initial.head)
	}
	s.hide("sum")
	if h.set(s.tree) != h.initial.nodes || len(h.ids) != 6 {
		t.Error("the set has another size without the summary")
	}
}
