package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"
)

// A history is the operations on one conversation from one check to the next.
type history struct {
	c *conversation

	mu      sync.Mutex
	ids     []uuid.UUID
	numbers map[uuid.UUID]int
	shape   shape
	known   []bool // of each node, whether it is known to have been stored once
	clean   []bool // and by its only attempt
	initial historyState
	ops     []porcupine.Operation
}

// maxHistoryNodes is when a history goes on in another conversation.
const maxHistoryNodes = 120

func newHistory(c *conversation, tree treeAnswer) *history {
	h := &history{c: c, numbers: map[uuid.UUID]int{}, initial: historyState{head: noNode}}
	for _, n := range tree.Data {
		if n.Kind == "message" {
			h.add(n.ID, n.ParentID)
			h.known[len(h.known)-1], h.clean[len(h.clean)-1] = true, true
		}
	}
	h.initial = historyState{h.set(tree), h.number(tree.HeadID)}
	return h
}

// add numbers a node.
func (h *history) add(id, parent uuid.UUID) int {
	n := len(h.ids)
	h.ids = append(h.ids, id)
	h.numbers[id] = n
	h.shape = append(h.shape, h.number(parent))
	h.known, h.clean = append(h.known, false), append(h.clean, false)
	return n
}

// number is a node's, noNode for none.
func (h *history) number(id uuid.UUID) int {
	if n, ok := h.numbers[id]; ok {
		return n
	}
	return noNode
}

// set numbers a tree's messages. One that nobody sent gets a number as well,
// and fits no history. Summaries come and go by themselves.
func (h *history) set(tree treeAnswer) (s nodeSet) {
	for _, n := range tree.Data {
		if n.Kind != "message" {
			continue
		}
		if _, ok := h.numbers[n.ID]; !ok {
			h.add(n.ID, n.ParentID)
		}
		s = s.with(true, h.numbers[n.ID])
	}
	return s
}

// record adds an operation that began at call. One whose outcome is unknown
// may still happen; it ends where the history does.
func (h *history) record(worker int, in historyInput, call int64, out historyOutput) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := clock()
	if out.outcome == unknown {
		end = openEnd
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: worker, Input: in, Call: call, Output: out, Return: end})
}

// openEnd stands for the time at which the history ends.
const openEnd = int64(1) << 62

var started = time.Now()

// clock is a time that only grows, in nanoseconds.
func clock() int64 { return int64(time.Since(started)) }

// A historyWriter works on one history.
type historyWriter struct {
	*run
	number int
	rng    *rand.Rand
	slot   int // which of the run's histories
}

func (w *historyWriter) work(ctx context.Context) {
	for ctx.Err() == nil {
		w.gate.RLock()
		w.mu.Lock()
		h := w.histories[w.slot]
		w.mu.Unlock()
		if ctx.Err() == nil && h != nil && !w.over.Load() {
			w.operate(ctx, h)
		}
		w.gate.RUnlock()
		w.sleep(ctx, w.cfg.Pause*time.Duration(50+w.rng.IntN(100))/100)
	}
}

func (w *historyWriter) operate(ctx context.Context, h *history) {
	h.mu.Lock()
	nodes := len(h.ids)
	h.mu.Unlock()
	switch n := w.rng.IntN(100); {
	case nodes == 0 || n < 45:
		w.append(ctx, h)
	case n < 58:
		w.moveHead(ctx, h)
	case n < 66:
		w.prune(ctx, h)
	case n < 86:
		w.readHead(ctx, h)
	default:
		w.readNodes(ctx, h)
	}
}

// some picks a node that was stored once, the newer the likelier.
func (w *historyWriter) some(h *history) (int, bool) {
	for range 10 {
		back := min(w.rng.IntN(len(h.ids)), w.rng.IntN(len(h.ids)))
		if n := len(h.ids) - 1 - back; h.known[n] {
			return n, true
		}
	}
	return noNode, false
}

func (w *historyWriter) pick(h *history) (n int, id uuid.UUID, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n, ok = w.some(h); ok {
		id = h.ids[n]
	}
	return n, id, ok
}

// isClean tells whether a node can't come back once it was pruned, as
// message.clean does.
func (h *history) isClean(n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clean[n]
}

func (w *historyWriter) append(ctx context.Context, h *history) {
	h.mu.Lock()
	id, parent := uuid.Must(uuid.NewV7()), uuid.Nil
	body := map[string]any{"id": id, "role": "user", "content": "said as " + id.String(), "parent_id": nil}
	if len(h.ids) > 0 {
		if n, ok := w.some(h); ok {
			parent = h.ids[n]
			body["parent_id"] = parent
		}
	}
	in := historyInput{kind: historyAppend, node: h.add(id, parent), move: w.rng.IntN(3) > 0}
	h.mu.Unlock()
	body["move_head"] = in.move
	call := clock()
	a, attempts := w.persist(ctx, w.rng, func(server int) answer {
		return w.as(h.c).do(ctx, w.rng, server, http.MethodPost, w.path(h.c)+"/messages", body, nil)
	})
	out := historyOutput{outcome: a.outcome()}
	switch {
	case a.again(), out.outcome == refused && attempts > 1: // the first attempt may have been stored, and pruned since
		out.outcome = unknown
	case out.outcome == refused && a.code != "parent_not_found":
		w.report.violate("append", "conversation %s: append of %s: %s", h.c.id, id, a.body)
	case out.outcome == acknowledged:
		h.mu.Lock()
		h.known[in.node], h.clean[in.node] = true, attempts == 1
		h.mu.Unlock()
	}
	h.record(w.number, in, call, out)
	w.report.operation("history: append", out.outcome, attempts)
}

// moveHead sends one request only: an attempt without an answer may still
// happen after a later one is answered.
func (w *historyWriter) moveHead(ctx context.Context, h *history) {
	n, id, ok := w.pick(h)
	if !ok {
		return
	}
	call := clock()
	a := w.as(h.c).do(ctx, nil, w.any(), http.MethodPatch, w.path(h.c), map[string]any{"head_id": id}, nil)
	h.record(w.number, historyInput{kind: historyMoveHead, node: n}, call, historyOutput{outcome: a.outcome()})
	w.report.operation("history: move head", a.outcome(), 1)
}

func (w *historyWriter) prune(ctx context.Context, h *history) {
	n, id, ok := w.pick(h)
	if !ok || !h.isClean(n) {
		return
	}
	call := clock()
	var got struct {
		Messages int       `json:"messages"`
		HeadID   uuid.UUID `json:"head_id"`
	}
	a, attempts := w.persist(ctx, w.rng, func(server int) answer {
		return w.as(h.c).do(ctx, w.rng, server, http.MethodDelete, w.path(h.c)+"/messages/"+id.String(), nil, &got)
	})
	h.mu.Lock()
	out := historyOutput{outcome: a.outcome(), again: attempts > 1, pruned: got.Messages, head: h.number(got.HeadID)}
	h.mu.Unlock()
	h.record(w.number, historyInput{kind: historyPrune, node: n}, call, out)
	w.report.operation("history: prune", out.outcome, attempts)
}

func (w *historyWriter) readHead(ctx context.Context, h *history) {
	call := clock()
	var got struct {
		HeadID uuid.UUID `json:"head_id"`
	}
	a := w.as(h.c).do(ctx, nil, w.any(), http.MethodGet, w.path(h.c), nil, &got)
	if a.outcome() == acknowledged {
		h.mu.Lock()
		head := h.number(got.HeadID)
		h.mu.Unlock()
		h.record(w.number, historyInput{kind: historyReadHead}, call, historyOutput{outcome: acknowledged, head: head})
	}
	w.report.operation("history: read head", a.outcome(), 1)
}

func (w *historyWriter) readNodes(ctx context.Context, h *history) {
	call := clock()
	var got treeAnswer
	a := w.as(h.c).do(ctx, nil, w.any(), http.MethodGet, w.path(h.c)+"/tree", nil, &got)
	if a.outcome() == acknowledged {
		h.mu.Lock()
		nodes := h.set(got)
		h.mu.Unlock()
		h.record(w.number, historyInput{kind: historyReadNodes}, call, historyOutput{outcome: acknowledged, nodes: nodes})
	}
	w.report.operation("history: read nodes", a.outcome(), 1)
}

// closeHistory ends a history, while nothing is under way, and has it checked.
// The next one begins with what is there now, or in another conversation.
func (r *run) closeHistory(ctx context.Context, slot int) {
	h := r.histories[slot]
	tree, a := r.readTree(ctx, h.c)
	if a.outcome() != acknowledged {
		r.report.violate("lost", "conversation %s of a history can't be read: %d %s", h.c.id, a.status, a.code)
		return
	}
	call := clock()
	nodes := h.set(tree)
	h.record(0, historyInput{kind: historyReadNodes}, call, historyOutput{outcome: acknowledged, nodes: nodes})
	h.record(0, historyInput{kind: historyReadHead}, call, historyOutput{outcome: acknowledged, head: h.number(tree.HeadID)})
	for i := range h.ops {
		if h.ops[i].Return == openEnd {
			h.ops[i].Return = call - 1 // nothing is under way any more
		}
	}
	r.checking.Go(func() { r.checkHistory(h) })
	next := h.c
	if len(tree.Data) > maxHistoryNodes {
		next, tree = r.create(ctx, h.c.tenant, false), treeAnswer{}
	}
	r.mu.Lock()
	r.histories[slot] = newHistory(next, tree)
	r.mu.Unlock()
}

// checkHistory looks for an order of the operations, and says how they went
// where there is none.
func (r *run) checkHistory(h *history) {
	result := h.shape.linearizable(h.initial, h.ops)
	r.report.count(func(p *Report) {
		p.Histories.Checked++
		p.Histories.Operations += len(h.ops)
		if result == porcupine.Unknown {
			p.Histories.Undecided++
		}
	})
	if result != porcupine.Illegal {
		return
	}
	last, text := h.shape.broken(h.initial, h.ops), ""
	for _, op := range last {
		text += fmt.Sprintf("\n    %d [%d, %d] %s", op.ClientId, op.Call, op.Return, describe(h.shape, op.Input.(historyInput), op.Output.(historyOutput)))
	}
	r.report.violate("not linearizable", "conversation %s: %d operations have no order in which they could have happened. "+
		"Up to the last one of these there is none, and without it there is one:%s", h.c.id, len(h.ops), text)
}
