package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/google/uuid"
)

// A writer works on the shared conversations, one operation after the other.
type writer struct {
	*run
	rng  *rand.Rand
	at   map[*conversation]uuid.UUID // where it left off in each
	chat *chat                       // over OpenAI's API
}

func newWriter(r *run, rng *rand.Rand) *writer {
	return &writer{run: r, rng: rng, at: map[*conversation]uuid.UUID{}}
}

// Limits of a shared conversation: it is replaced when it is that large, and
// grown no deeper.
const (
	maxMessages = 260
	maxDepth    = 70
)

func (w *writer) work(ctx context.Context) {
	w.repeat(ctx, func() {
		w.mu.Lock()
		c := w.shared[w.rng.IntN(len(w.shared))]
		w.mu.Unlock()
		if c.stands() {
			w.operate(ctx, c)
		}
	})
}

// operate does one thing.
func (w *writer) operate(ctx context.Context, c *conversation) {
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
	30: {(*writer).goOn, (*writer).pry},
	12: {(*writer).goOnLong, (*writer).reply, (*writer).useTools},
	8:  {(*writer).edit, (*writer).regenerate, (*writer).read, (*writer).askOpenAI},
	4:  {(*writer).prune, (*writer).fork, (*writer).compact, (*writer).search, (*writer).recall, (*writer).slowReply},
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

// tip is where to go on: mostly where this writer left off, else anywhere.
func (w *writer) tip(c *conversation, standing []*message) *message {
	left := slices.IndexFunc(standing, func(m *message) bool { return m.id == w.at[c] })
	if left >= 0 && standing[left].depth < maxDepth && w.rng.IntN(4) > 0 {
		return standing[left]
	}
	for range 20 {
		if m := w.some(standing); m.depth < maxDepth {
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

func (w *writer) goOn(ctx context.Context, c *conversation, standing []*message) bool {
	parent := w.tip(c, standing)
	return w.append(ctx, c, "append", w.newMessage(parent, next(parent.role)))
}

func (w *writer) goOnLong(ctx context.Context, c *conversation, standing []*message) bool {
	parent := w.tip(c, standing)
	roles := []string{next(parent.role)}
	for range 1 + w.rng.IntN(6) {
		roles = append(roles, next(roles[len(roles)-1]))
	}
	return w.appendChain(ctx, c, parent, roles...)
}

// edit appends beside a user message.
func (w *writer) edit(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.some(standing)
	c.mu.Lock()
	parent := c.messages[m.parent]
	c.mu.Unlock()
	return m.role == "user" && w.append(ctx, c, "edit", w.newMessage(parent, "user"))
}

// regenerate appends another answer.
func (w *writer) regenerate(ctx context.Context, c *conversation, standing []*message) bool {
	m := w.some(standing)
	return m.role == "user" && w.append(ctx, c, "regenerate", w.newMessage(m, "assistant"))
}

// useTools has an agent work: calls and their results, several rounds in one
// turn. Sometimes a call stays without its result.
func (w *writer) useTools(ctx context.Context, c *conversation, standing []*message) bool {
	at := w.tip(c, standing)
	if open := openCalls(c.known(at)); len(open) > 0 {
		m := w.newMessage(at, "tool")
		m.answers = open[w.rng.IntN(len(open))].ID
		return w.append(ctx, c, "tool result", m)
	}
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
			caller.calls = append(caller.calls, call{fmt.Sprintf("call_%08x", n), "measure", fmt.Sprintf(`{"stool": %d}`, n%40)})
		}
		for _, i := range w.rng.Perm(len(caller.calls)) {
			say("tool").answers = caller.calls[i].ID
		}
	}
	if w.rng.IntN(3) == 0 { // the last result is yet to come, or never does
		ms = ms[:len(ms)-1]
	} else {
		say("assistant")
	}
	return w.append(ctx, c, "tool calls", ms...)
}

// openCalls gives the calls at the end of a path that have no result.
func openCalls(path []*message) (open []call) {
	answered := map[string]bool{}
	for _, m := range slices.Backward(path) {
		if m.role != "tool" {
			return slices.DeleteFunc(slices.Clone(m.calls), func(c call) bool { return answered[c.ID] })
		}
		answered[m.answers] = true
	}
	return nil
}

// newMessage makes a message below another one, nil for a root. Some are pinned.
func (w *writer) newMessage(parent *message, role string) *message {
	m := &message{id: uuid.Must(uuid.NewV7()), role: role, pinned: w.rng.IntN(12) == 0}
	above := noMark
	if parent != nil {
		m.parent, above = parent.id, parent.mark
	}
	m.mark, m.content = w.marks.add(above, prose(w.rng, 12+w.rng.IntN(40)), false)
	if role == "assistant" && w.rng.IntN(2) == 0 {
		m.reasoning = fmt.Sprintf("Thought %d.", w.rng.IntN(1000))
	}
	return m
}

func (w *writer) appendChain(ctx context.Context, c *conversation, parent *message, roles ...string) bool {
	var ms []*message
	for _, role := range roles {
		parent = w.newMessage(parent, role)
		ms = append(ms, parent)
	}
	return w.append(ctx, c, "chain", ms...)
}

// append sends messages, each below the one before it, and notes in the ledger
// what comes of it.
func (w *writer) append(ctx context.Context, c *conversation, kind string, ms ...*message) bool {
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
	a, attempts := w.persist(ctx, w.rng, request{tenant: c.tenant, method: http.MethodPost, path: c.path() + "/messages", body: body})
	c.mu.Lock()
	defer c.mu.Unlock()
	o := a.outcome()
	if a.again() {
		o = unknown
	}
	if o == acknowledged {
		w.report.findings(checkAppended(c, ms, a))
		w.report.checked("messages in answers to appends", len(ms))
		w.at[c] = ms[len(ms)-1].id
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
			m.state, wrong = refused, "append of "+m.id.String()+" was refused: "+string(a.body)
		case i == 0:
			wrong = c.refuse(m)
		default:
			m.state = ms[0].state
		}
		if wrong != "" {
			w.report.violate("append", "conversation %s: %s", c.id, wrong)
		}
	}
	w.report.operation(kind, o, attempts)
	return true
}

// checkAppended reads the answer to an append. The caller holds mu.
func checkAppended(c *conversation, ms []*message, a answer) (found []finding) {
	var page struct{ Data []shown }
	err := json.Unmarshal(a.body, &page)
	if len(ms) == 1 {
		page.Data = make([]shown, 1)
		err = json.Unmarshal(a.body, &page.Data[0])
	}
	if err != nil || len(page.Data) != len(ms) {
		return []finding{{"append", fmt.Sprintf("conversation %s: %d messages are answered by %s: %v", c.id, len(ms), clip(string(a.body), 300), err)}}
	}
	for i, m := range ms {
		found = append(found, checkShown(c, m, page.Data[i], "the answer to its append")...)
	}
	return found
}

// A shown is a message as the REST API shows it, wherever it does.
type shown struct {
	ID         uuid.UUID  `json:"id"`
	ParentID   uuid.UUID  `json:"parent_id"`
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []chatCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
	Reasoning  string     `json:"reasoning"`
	Pinned     bool       `json:"pinned"`
	Depth      int        `json:"depth"`
}

func (s *shown) text() string {
	if s.Content == nil {
		return ""
	}
	return *s.Content
}

// checkShown compares a message that a server shows with the ledger. The caller
// holds the conversation's mu.
func checkShown(c *conversation, m *message, got shown, where string) []finding {
	same := got.ID == m.id && got.ParentID == m.parent && got.Role == m.role && got.Depth == m.depth && got.Pinned == m.pinned &&
		(m.content == "" || got.text() == m.content) && got.ToolCallID == m.answers && sameCalls(got.ToolCalls, m.calls) && got.Reasoning == m.reasoning
	if same {
		return nil
	}
	got.Content = nil
	return []finding{{"changed", fmt.Sprintf("conversation %s: %s shows %+v, and the ledger has %+v", c.id, where, got, *m)}}
}
