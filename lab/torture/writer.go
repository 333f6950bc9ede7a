package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
)

// A writer works on the shared conversations, one operation after the other.
type writer struct {
	*run
	rng *rand.Rand
}

// Limits of a shared conversation: it is replaced when it is that large, and
// grown no deeper.
const (
	maxMessages = 260
	maxDepth    = 70
)

// work does one thing.
func (w *writer) work(ctx context.Context) {
	w.mu.Lock()
	c := w.shared[w.rng.IntN(len(w.shared))]
	w.mu.Unlock()
	if !c.stands() {
		return
	}
	standing := c.standing(false)
	if len(standing) == 0 {
		w.appendChain(ctx, c, nil, "system", "user", "assistant")
		return
	}
	for ctx.Err() == nil {
		if operations[w.rng.IntN(len(operations))](w, ctx, c, standing) {
			return
		}
	}
}

// operations are what writers choose from; each stands there as often as its
// weight says. One that finds nothing to do returns false.
var operations = weighted(map[int][]operation{
	35: {(*writer).goOn, (*writer).pry},
	14: {(*writer).reply, (*writer).useTools},
	8:  {(*writer).edit, (*writer).edit, (*writer).read, (*writer).askOpenAI, (*writer).reply},
	4:  {(*writer).prune, (*writer).compact, (*writer).search, (*writer).recall},
	1:  {(*writer).deleteOwn},
})

type operation func(w *writer, ctx context.Context, c *conversation, standing []*message) bool

func weighted(weights map[int][]operation) (all []operation) {
	for weight, ops := range weights {
		for range weight {
			all = append(all, ops...)
		}
	}
	return all
}

func (w *writer) some(of []*message) *message { return of[w.rng.IntN(len(of))] }

// tip is where to go on: mostly at a message of late, else anywhere.
func (w *writer) tip(standing []*message) *message {
	for range 20 {
		m := w.some(standing)
		if w.rng.IntN(4) > 0 {
			m = standing[len(standing)-1-w.rng.IntN(min(len(standing), 4))]
		}
		if m.depth < maxDepth {
			return m
		}
	}
	return standing[0]
}

// next is the role that speaks after another.
func next(role string) string {
	if role == "user" || role == "tool" {
		return "assistant"
	}
	return "user"
}

// goOn appends a message, or several at once.
func (w *writer) goOn(ctx context.Context, c *conversation, standing []*message) bool {
	parent := w.tip(standing)
	roles := []string{next(parent.role)}
	for range max(0, w.rng.IntN(20)-13) {
		roles = append(roles, next(roles[len(roles)-1]))
	}
	return w.appendChain(ctx, c, parent, roles...)
}

// edit appends beside a user message, or another answer below it.
func (w *writer) edit(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.some(standing)
	if m.role != "user" {
		return false
	}
	role := "assistant"
	if w.rng.IntN(2) == 0 {
		c.mu.Lock()
		m, role = c.messages[m.parent], "user"
		c.mu.Unlock()
	}
	return w.appendChain(ctx, c, m, role)
}

// useTools has an agent work: calls and their results, several rounds in one
// turn. Sometimes a call stays without its result.
func (w *writer) useTools(ctx context.Context, c *conversation, standing []*message) bool {
	at := w.tip(standing)
	var ms []*message
	say := func(role string) *message {
		at = w.newMessage(at, role)
		ms = append(ms, at)
		return at
	}
	if at.role == "assistant" {
		say("user")
	}
	for range 1 + w.rng.IntN(4) {
		caller := say("assistant")
		for range 1 + w.rng.IntN(3) {
			n := w.rng.IntN(1 << 30)
			caller.calls = append(caller.calls, chat.Call{ID: fmt.Sprintf("call_%08x", n), Name: "measure", Arguments: fmt.Sprintf(`{"stool": %d}`, n%40)})
		}
		for _, i := range w.rng.Perm(len(caller.calls)) {
			say("tool").answers = caller.calls[i].ID
		}
	}
	if w.rng.IntN(3) == 0 { // the last result never comes
		ms = ms[:len(ms)-1]
	}
	return w.append(ctx, c, ms...)
}

// newMessage makes a message below another one, nil for a root. Some are pinned.
func (w *writer) newMessage(parent *message, role string) *message {
	m := &message{id: uuid.Must(uuid.NewV7()), role: role, pinned: w.rng.IntN(12) == 0}
	above := noMark
	if parent != nil {
		m.parent, above = parent.id, parent.mark
	}
	m.mark, m.content = w.marks.add(above, prose(w.rng, 12+w.rng.IntN(40)), false)
	return m
}

func (w *writer) appendChain(ctx context.Context, c *conversation, parent *message, roles ...string) bool {
	var ms []*message
	for _, role := range roles {
		parent = w.newMessage(parent, role)
		ms = append(ms, parent)
	}
	return w.append(ctx, c, ms...)
}

// append sends messages, each below the one before it, and notes in the ledger
// what comes of it.
func (w *writer) append(ctx context.Context, c *conversation, ms ...*message) bool {
	body := ms[0].body()
	if len(ms) == 1 {
		body["move_head"] = w.rng.IntN(4) > 0
	} else {
		var bodies []map[string]any
		for _, m := range ms {
			bodies = append(bodies, m.body())
		}
		body = map[string]any{"messages": bodies}
	}
	body["parent_id"] = nil
	if ms[0].parent != uuid.Nil {
		body["parent_id"] = ms[0].parent
	}
	c.add(ms...)
	a, attempts := w.persist(ctx, w.rng, c.to(http.MethodPost, "/messages", body))
	c.mu.Lock()
	defer c.mu.Unlock()
	o := a.outcome()
	if a.again() {
		o = unknown
	}
	if o == acknowledged {
		c.checkAppended(ms, a)
	}
	for i, m := range ms {
		m.retried = m.retried || attempts > 1
		switch {
		case o == acknowledged:
			c.acknowledge(m)
		case o == unknown:
			m.state = unknown
		case a.code != "parent_not_found":
			m.state = refused
			c.violate("append", "the append of %s was refused: %s", m.id, a.body)
		case i == 0:
			c.refuse(m)
		default:
			m.state = ms[0].state
		}
	}
	return true
}

// checkAppended reads the answer to an append. The caller holds mu.
func (c *conversation) checkAppended(ms []*message, a answer) {
	var page struct{ Data []shown }
	if len(ms) == 1 {
		a.body = slices.Concat([]byte(`{"data":[`), a.body, []byte(`]}`))
	}
	if err := json.Unmarshal(a.body, &page); err != nil || len(page.Data) != len(ms) {
		c.violate("append", "%d messages are answered by %s: %v", len(ms), clip(string(a.body), 300), err)
		return
	}
	for i, m := range ms {
		c.checkShown(m, page.Data[i], "the answer to its append")
	}
	c.report.checked("messages in answers to appends", len(ms))
}
