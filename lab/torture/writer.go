package torture

import (
	"context"
	"encoding/json"
	"fmt"
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

	chats []*openaiChat // over OpenAI's surface, one of each kind
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
	{1, (*writer).pruneShallow},
	{2, (*writer).undo},
	{3, (*writer).forkBranch},
	{3, (*writer).rename},
	{10, (*writer).useTools},
	{12, (*writer).reply},
	{3, (*writer).compact},
	{8, (*writer).readContext},
	{3, (*writer).readTranscript},
	{3, (*writer).readMessage},
	{3, (*writer).readPruned},
	{4, (*writer).search},
	{4, (*writer).share},
	{10, (*writer).pry},
	{6, (*writer).appendByMCP},
	{14, (*writer).askOpenAI},
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
	if after.role == "user" || after.role == "tool" {
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

// newMessage makes a message, to be said after above. Some are pinned, some
// have metadata.
func (w *writer) newMessage(parent uuid.UUID, above mark, role string) *message {
	m := &message{id: uuid.Must(uuid.NewV7()), parent: parent, role: role, pinned: w.rng.IntN(12) == 0, metadata: "{}"}
	m.mark, m.content = w.marks.add(above, prose(w.rng, 12+w.rng.IntN(40)), false)
	if role == "assistant" && w.rng.IntN(2) == 0 {
		m.reasoning = fmt.Sprintf("Thought %d.", w.rng.IntN(1000))
	}
	if w.rng.IntN(3) == 0 {
		m.metadata = fmt.Sprintf(`{"of":"%v","n":%d.50,"tags":["a","b"],"none":null}`, m.mark, w.rng.IntN(1000))
	}
	return m
}

func (w *writer) appendOne(ctx context.Context, c *conversation, kind string, parent *message, role string) {
	id, above := uuid.Nil, noMark
	if parent != nil {
		id, above = parent.id, parent.mark
	}
	w.appendMessage(ctx, c, kind, w.newMessage(id, above, role))
}

func (w *writer) appendMessage(ctx context.Context, c *conversation, kind string, m *message) {
	body := m.body()
	body["parent_id"], body["move_head"] = orNull(m.parent), w.rng.IntN(4) > 0
	w.append(ctx, c, kind, []*message{m}, body)
}

func orNull(id uuid.UUID) any {
	if id == uuid.Nil {
		return nil
	}
	return id
}

func (w *writer) appendChain(ctx context.Context, c *conversation, parent *message, roles []string) {
	id, above := uuid.Nil, noMark
	if parent != nil {
		id, above = parent.id, parent.mark
	}
	var ms []*message
	for _, role := range roles {
		m := w.newMessage(id, above, role)
		ms = append(ms, m)
		id, above = m.id, m.mark
	}
	w.appendMessages(ctx, c, "chain", ms)
}

// appendMessages sends messages as a chain.
func (w *writer) appendMessages(ctx context.Context, c *conversation, kind string, ms []*message) {
	c.mu.Lock()
	c.chains++
	chain := c.chains
	c.mu.Unlock()
	var bodies []map[string]any
	for _, m := range ms {
		m.chain = chain
		bodies = append(bodies, m.body())
	}
	w.append(ctx, c, kind, ms, map[string]any{"parent_id": orNull(ms[0].parent), "messages": bodies})
}

// append sends messages and notes in the ledger what comes of it.
func (w *writer) append(ctx context.Context, c *conversation, kind string, ms []*message, body map[string]any) {
	c.mu.Lock()
	for _, m := range ms {
		c.add(m)
	}
	c.mu.Unlock()
	first := time.Now()
	a, attempts := w.persist(ctx, w.rng, func(server int) answer {
		return w.as(c).do(ctx, w.rng, server, http.MethodPost, w.path(c)+"/messages", body, nil)
	})
	if a.outcome() == acknowledged {
		w.compareAppended(c, ms, a, first)
		w.at[c] = ms[len(ms)-1].id
	}
	w.report.operation(kind, w.conclude(c, ms, a, attempts), attempts)
}

// compareAppended reads the answer to an append.
func (w *run) compareAppended(c *conversation, ms []*message, a answer, first time.Time) {
	var page struct{ Data []shown }
	var err error
	if ms[0].chain > 0 {
		err = json.Unmarshal(a.body, &page)
	} else {
		page.Data = make([]shown, 1)
		err = json.Unmarshal(a.body, &page.Data[0])
	}
	if err != nil {
		w.report.violate("bad answer", "append: %v: %.200s", err, a.body)
		return
	}
	c.mu.Lock()
	found := checkAppended(c, ms, page.Data, a.status == http.StatusCreated, first, a.at)
	c.mu.Unlock()
	w.report.findings(found)
	w.report.count(func(r *Report) { r.Checks.Appended += len(ms) })
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

// as gives the client with the key of a conversation's tenant.
func (w *run) as(c *conversation) *client { return w.client.as(c.tenant) }

func (w *run) path(c *conversation) string { return "/v1/conversations/" + c.id.String() }

// branchPath is the path of what concerns a branch.
func (w *run) branchPath(c *conversation, head *message, what string) string {
	return w.path(c) + "/branches/" + head.id.String() + "/" + what
}
