package torture

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
)

// An outcome is what a client knows of an operation.
type outcome int

const (
	sent         outcome = iota // under way
	acknowledged                // the server said that it was done
	refused                     // the server said that it wasn't, and never will be
	unknown                     // no answer, or one that leaves it open
)

// A message is what the ledger knows of one message: what was sent, and what
// was answered.
type message struct {
	id, parent uuid.UUID // parent is uuid.Nil for a root
	mark       mark      // noMark for an answer that no client has seen yet
	role       string
	content    string // "" for an answer that no client has seen yet
	calls      []chat.Call
	answers    string // id of the call that a tool message answers
	pinned     bool
	depth      int

	state   outcome
	sentAt  time.Time // of the first attempt
	ackedAt time.Time
	retried bool // it was sent more than once, so a late attempt may still land, or its client may yet do so

	pruneSentAt time.Time // of the first request to prune it; zero where there was none
	prunedAt    time.Time // when one was acknowledged
}

// A conversation is what the ledger knows of one conversation.
type conversation struct {
	id     uuid.UUID
	tenant *tenant
	report *recorder

	mu       sync.Mutex
	state    outcome
	deleted  outcome // refused while nobody asked for it
	messages map[uuid.UUID]*message
	order    []*message // as they were sent
	summary  uuid.UUID  // one that the last check saw
}

func newConversation(t *tenant, report *recorder) *conversation {
	return &conversation{id: uuid.Must(uuid.NewV7()), tenant: t, report: report, deleted: refused, messages: map[uuid.UUID]*message{}}
}

func (c *conversation) violate(kind, format string, args ...any) {
	c.report.violate(kind, "conversation "+c.id.String()+": "+format, args...)
}

// to is a request about the conversation.
func (c *conversation) to(method, route string, body any) request {
	return request{tenant: c.tenant, method: method, path: "/v1/conversations/" + c.id.String() + route, body: body}
}

// on is a request about the branch of a head, or about the message itself.
func (c *conversation) on(m *message, method, route string, body any) request {
	q := c.to(method, strings.Replace(route, "{}", m.id.String(), 1), body)
	q.c, q.about = c, m
	return q
}

// add notes messages that are about to be sent.
func (c *conversation) add(ms ...*message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range ms {
		m.state, m.sentAt = sent, time.Now()
		if p := c.messages[m.parent]; p != nil {
			m.depth = p.depth + 1
		}
		c.messages[m.id] = m
		c.order = append(c.order, m)
	}
}

// branch gives the messages from the root to one. The caller holds mu.
func (c *conversation) branch(id uuid.UUID) (path []*message) {
	for m := c.messages[id]; m != nil; m = c.messages[m.parent] {
		path = append(path, m)
	}
	slices.Reverse(path)
	return path
}

// known is a copy of the branch of a head, so that messages may be read without
// mu while others note what they learn of them.
func (c *conversation) known(head *message) (path []*message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.branch(head.id) {
		copied := *m
		path = append(path, &copied)
	}
	return path
}

// prunedBefore tells whether it was acknowledged before a time that the message,
// or one above it, was pruned. The caller holds mu.
func (c *conversation) prunedBefore(m *message, at time.Time) bool {
	return slices.ContainsFunc(c.branch(m.id), func(m *message) bool { return !m.prunedAt.IsZero() && m.prunedAt.Before(at) })
}

// mayBePruned tells whether a client ever asked to prune the message or one
// above it. The caller holds mu.
func (c *conversation) mayBePruned(m *message) bool {
	return slices.ContainsFunc(c.branch(m.id), func(m *message) bool { return !m.pruneSentAt.IsZero() })
}

// standing gives acknowledged messages that are not known to be pruned, or those
// that are.
func (c *conversation) standing(pruned bool) (found []*message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, m := range c.order {
		if m.state == acknowledged && c.prunedBefore(m, now) == pruned {
			found = append(found, m)
		}
	}
	return found
}

// acknowledge notes that a message is stored. The caller holds mu.
func (c *conversation) acknowledge(m *message) {
	if m.state == acknowledged {
		return
	}
	m.state, m.ackedAt = acknowledged, time.Now()
	if p := c.messages[m.parent]; p != nil && c.prunedBefore(p, m.sentAt) {
		c.violate("came back", "message %s was taken under %s, whose pruning was acknowledged before it was sent", m.id, m.parent)
	}
}

// refuse notes that a server refused a message because its parent isn't there. It
// leaves open whether an earlier attempt was stored. The caller holds mu.
func (c *conversation) refuse(m *message) {
	if m.state = refused; m.retried {
		m.state = unknown
	}
	if p := c.messages[m.parent]; p == nil || p.state == acknowledged && !c.mayBePruned(p) {
		c.violate("lost", "message %s was refused because %s isn't there, which was acknowledged and never pruned", m.id, m.parent)
	}
}

// stands tells whether clients should work on the conversation.
func (c *conversation) stands() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == acknowledged && c.deleted == refused
}
