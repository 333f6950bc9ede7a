package torture

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// A writer works on the shared conversations, one operation after the other.
type writer struct {
	*run
	rng *rand.Rand
	at  map[*conversation]uuid.UUID // where it left off in each
}

// Limits of a shared conversation: it is let go when it is that large, and
// grown no deeper.
const (
	maxMessages = 260
	maxDepth    = 70
)

// work works until ctx ends. While a check holds the gate, it waits.
func (w *writer) work(ctx context.Context) {
	for ctx.Err() == nil {
		w.gate.RLock()
		c := w.pick()
		if ctx.Err() == nil && c != nil && !w.over.Load() {
			w.operate(ctx, c)
		}
		w.gate.RUnlock()
		w.sleep(ctx, w.cfg.Pause*time.Duration(50+w.rng.IntN(100))/100)
	}
}

func (w *run) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (w *writer) pick() *conversation {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.shared) == 0 {
		return nil
	}
	return w.shared[w.rng.IntN(len(w.shared))]
}

// operate does one thing.
func (w *writer) operate(ctx context.Context, c *conversation) {
	c.mu.Lock()
	standing := c.standing()
	c.mu.Unlock()
	if len(standing) == 0 {
		w.appendChain(ctx, c, nil, []string{"system", "user", "assistant"})
		return
	}
	for {
		if op := operations[w.rng.IntN(len(operations))]; op.do(w, ctx, c, standing) {
			return
		}
	}
}

// operations are what writers choose from; each stands there as often as its
// weight says. One that finds nothing to do returns false.
var operations = weighted([]weightedOperation{
	{30, (*writer).goOn},
	{12, (*writer).goOnLong},
	{8, (*writer).edit},
	{8, (*writer).regenerate},
	{8, (*writer).moveHead},
	{5, (*writer).prune},
	{3, (*writer).forkBranch},
	{12, (*writer).reply},
	{3, (*writer).compact},
	{8, (*writer).readContext},
	{3, (*writer).readTranscript},
	{3, (*writer).readPruned},
})

type weightedOperation struct {
	weight int
	do     func(w *writer, ctx context.Context, c *conversation, standing []*message) bool
}

func weighted(ops []weightedOperation) (all []weightedOperation) {
	for _, op := range ops {
		for range op.weight {
			all = append(all, op)
		}
	}
	return all
}

// tip is where to go on: mostly where this writer left off, else anywhere.
func (w *writer) tip(c *conversation, standing []*message) *message {
	if w.rng.IntN(4) > 0 {
		for _, m := range standing {
			if m.id == w.at[c] && m.depth < maxDepth {
				return m
			}
		}
	}
	for range 20 {
		if m := standing[w.rng.IntN(len(standing))]; m.depth < maxDepth {
			return m
		}
	}
	return standing[0]
}

// turn is who speaks after a message.
func turn(after *message) string {
	if after.role == "user" {
		return "assistant"
	}
	return "user"
}

func (w *writer) goOn(ctx context.Context, c *conversation, standing []*message) bool {
	parent := w.tip(c, standing)
	w.appendOne(ctx, c, "append", parent, turn(parent))
	return true
}

func (w *writer) goOnLong(ctx context.Context, c *conversation, standing []*message) bool {
	parent := w.tip(c, standing)
	roles := []string{turn(parent)}
	for range 1 + w.rng.IntN(6) {
		roles = append(roles, turn(&message{role: roles[len(roles)-1]}))
	}
	w.appendChain(ctx, c, parent, roles)
	return true
}

// edit appends beside a user message.
func (w *writer) edit(ctx context.Context, c *conversation, standing []*message) bool {
	m := standing[w.rng.IntN(len(standing))]
	if m.role != "user" {
		return false
	}
	var parent *message
	if m.parent != uuid.Nil {
		c.mu.Lock()
		parent = c.messages[m.parent]
		c.mu.Unlock()
	}
	w.appendOne(ctx, c, "edit", parent, "user")
	return true
}

// regenerate appends another answer.
func (w *writer) regenerate(ctx context.Context, c *conversation, standing []*message) bool {
	m := standing[w.rng.IntN(len(standing))]
	if m.role != "user" {
		return false
	}
	w.appendOne(ctx, c, "regenerate", m, "assistant")
	return true
}

// persistence bounds how often an operation is sent.
const persistence = 60

// persist sends a request until it is answered for good. Now and then a client
// that went away doesn't come back. It tells how often it was sent.
func (w *run) persist(ctx context.Context, rng *rand.Rand, attempt func(server int) answer) (a answer, attempts int) {
	for attempts = 1; ; attempts++ {
		a = attempt(rng.IntN(len(w.client.programs)))
		if !a.again() || ctx.Err() != nil || attempts == persistence || a.dropped && rng.IntN(5) == 0 {
			return a, attempts
		}
		w.sleep(ctx, time.Duration(20+rng.IntN(130))*time.Millisecond)
	}
}

// newText makes a message's text, after parent's.
func (w *writer) newText(parent mark) (mark, string) {
	return w.marks.add(parent, prose(w.rng, 12+w.rng.IntN(40)), false)
}

func (w *writer) appendOne(ctx context.Context, c *conversation, kind string, parent *message, role string) {
	m := &message{id: uuid.Must(uuid.NewV7()), role: role}
	body := map[string]any{"id": m.id, "role": role, "parent_id": nil, "move_head": w.rng.IntN(4) > 0, "pinned": w.rng.IntN(12) == 0}
	above := noMark
	if parent != nil {
		m.parent, above = parent.id, parent.mark
		body["parent_id"] = parent.id
	}
	m.mark, m.content = w.newText(above)
	body["content"] = m.content
	w.append(ctx, c, kind, []*message{m}, body)
}

func (w *writer) appendChain(ctx context.Context, c *conversation, parent *message, roles []string) {
	body := map[string]any{"parent_id": nil}
	id, above := uuid.Nil, noMark
	if parent != nil {
		id, above = parent.id, parent.mark
		body["parent_id"] = id
	}
	c.mu.Lock()
	c.chains++
	chain := c.chains
	c.mu.Unlock()
	var ms []*message
	var bodies []map[string]any
	for _, role := range roles {
		m := &message{id: uuid.Must(uuid.NewV7()), parent: id, role: role, chain: chain}
		m.mark, m.content = w.newText(above)
		bodies = append(bodies, map[string]any{"id": m.id, "role": role, "content": m.content})
		ms = append(ms, m)
		id, above = m.id, m.mark
	}
	body["messages"] = bodies
	w.append(ctx, c, "chain", ms, body)
}

// append sends messages and notes in the ledger what comes of it.
func (w *writer) append(ctx context.Context, c *conversation, kind string, ms []*message, body map[string]any) {
	c.mu.Lock()
	for _, m := range ms {
		c.add(m)
	}
	c.mu.Unlock()
	a, attempts := w.persist(ctx, w.rng, func(server int) answer {
		return w.client.do(ctx, w.rng, server, http.MethodPost, w.path(c)+"/messages", body, nil)
	})
	w.report.operation(kind, w.conclude(c, ms, a, attempts), attempts)
	if a.outcome() == acknowledged {
		w.at[c] = ms[len(ms)-1].id
	}
}

// conclude notes in the ledger what came of messages that were sent.
func (w *run) conclude(c *conversation, ms []*message, a answer, attempts int) outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := a.outcome()
	if a.again() {
		o = unknown
	}
	for i, m := range ms {
		m.retried = m.retried || attempts > 1
		wrong := ""
		switch {
		case o == acknowledged:
			wrong = c.acknowledge(m)
		case o == unknown:
			m.state = unknown
		case a.code != "parent_not_found":
			wrong = "append of " + m.id.String() + " was refused: " + string(a.body)
			m.state = refused
		case i == 0:
			wrong = c.refuse(m)
		default:
			m.state = ms[0].state
		}
		if wrong != "" {
			w.report.violate("append", "conversation %s: %s", c.id, wrong)
		}
	}
	return o
}

func (w *run) path(c *conversation) string { return "/v1/conversations/" + c.id.String() }

// branchPath is the path of what concerns a branch.
func (w *run) branchPath(c *conversation, head *message, what string) string {
	return w.path(c) + "/branches/" + head.id.String() + "/" + what
}
