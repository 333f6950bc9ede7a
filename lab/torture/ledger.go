package torture

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
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
	answer     bool   // a model gave it
	calls      []call // of an assistant
	answers    string // id of the call that a tool message answers
	pinned     bool
	reasoning  string
	depth      int

	state   outcome
	sentAt  time.Time // of the first attempt
	ackedAt time.Time
	retried bool // it was sent more than once, so a late attempt may still land
	pending bool // its client may send it again, although it is acknowledged

	pruneSentAt time.Time // of the first request to prune it; zero where there was none
	prunedAt    time.Time // when one was acknowledged
	prunes      int       // how many clients asked for that
}

// A call is a tool call of an assistant message.
type call struct{ ID, Name, Arguments string }

// A conversation is what the ledger knows of one conversation.
type conversation struct {
	id     uuid.UUID
	tenant *tenant

	mu       sync.Mutex
	state    outcome
	deleted  outcome // refused while nobody asked for it
	messages map[uuid.UUID]*message
	order    []*message // as they were sent
	source   []*message // of a fork whose messages aren't known yet: the branch that it copies
	summary  uuid.UUID  // one that the last check saw
}

func newConversation(t *tenant) *conversation {
	return &conversation{id: uuid.Must(uuid.NewV7()), tenant: t, deleted: refused, messages: map[uuid.UUID]*message{}}
}

func (c *conversation) path() string { return "/v1/conversations/" + c.id.String() }

// on is the path of a route about a branch.
func (c *conversation) on(head *message, route string) string {
	return c.path() + "/branches/" + head.id.String() + "/" + route
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
	for ; m != nil; m = c.messages[m.parent] {
		if !m.prunedAt.IsZero() && m.prunedAt.Before(at) {
			return true
		}
	}
	return false
}

// mayBePruned tells whether a client ever asked to prune the message or one
// above it. The caller holds mu.
func (c *conversation) mayBePruned(m *message) bool {
	for ; m != nil; m = c.messages[m.parent] {
		if !m.pruneSentAt.IsZero() {
			return true
		}
	}
	return false
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

// acknowledge notes that a message is stored, and gives what is wrong with that.
// The caller holds mu.
func (c *conversation) acknowledge(m *message) (wrong string) {
	if m.state == acknowledged {
		return ""
	}
	m.state, m.ackedAt = acknowledged, time.Now()
	if p := c.messages[m.parent]; p != nil && c.prunedBefore(p, m.sentAt) {
		return fmt.Sprintf("message %s was taken under %s, whose pruning was acknowledged before it was sent", m.id, m.parent)
	}
	return ""
}

// refuse notes that a server refused a message because its parent isn't there,
// and gives what is wrong with that. It leaves open whether an earlier attempt
// was stored. The caller holds mu.
func (c *conversation) refuse(m *message) (wrong string) {
	if m.state = refused; m.retried {
		m.state = unknown
	}
	if m.parent == uuid.Nil {
		return fmt.Sprintf("root %s was refused for want of a parent", m.id)
	}
	if p := c.messages[m.parent]; p.state == acknowledged && !c.mayBePruned(p) {
		return fmt.Sprintf("message %s was refused because %s isn't there, which was acknowledged and never pruned", m.id, m.parent)
	}
	return ""
}

// clean tells whether a message can't come back once it was pruned: it was
// stored by its only attempt, which is answered. A message that was sent twice
// could be stored again by the first attempt, if that comes late.
func (m *message) clean() bool { return m.state == acknowledged && !m.retried && !m.pending }

// fill makes the messages of a fork. Their ids are the servers' choice: a fork
// that nobody has worked on is one path, and the tree says which message stands
// at which depth of it. One that isn't there gets an id of its own, and so is
// lost. The caller holds mu.
func (c *conversation) fill(tree treeAnswer) {
	at := map[int]uuid.UUID{}
	for _, n := range tree.Data {
		if n.Kind == "message" {
			at[n.Depth] = n.ID
		}
	}
	parent := uuid.Nil
	for i, m := range c.source {
		copied := *m // with its text, pin and times
		var ok bool
		if copied.id, ok = at[i]; !ok {
			copied.id = uuid.New()
		}
		copied.parent, copied.depth = parent, i
		copied.state, copied.retried, copied.pending = acknowledged, false, false
		copied.pruneSentAt, copied.prunedAt, copied.prunes = time.Time{}, time.Time{}, 0
		c.messages[copied.id] = &copied
		c.order = append(c.order, &copied)
		parent = copied.id
	}
	c.source = nil
}

// stands tells whether clients should work on the conversation.
func (c *conversation) stands() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == acknowledged && c.deleted == refused && c.source == nil
}
