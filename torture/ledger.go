package torture

import (
	"fmt"
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

func (o outcome) String() string {
	return [...]string{"sent", "acknowledged", "refused", "unknown"}[o]
}

// A message is what the ledger knows of one message: what was sent, and what
// was heard of it.
type message struct {
	id, parent uuid.UUID // parent is uuid.Nil for a root
	mark       mark      // noMark for an answer that nobody has seen yet
	role       string
	content    string // of an answer that nobody has seen yet: ""
	answer     bool   // a model said it
	chain      int    // messages with the same number, over 0, are stored together or not at all
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

// A conversation is what the ledger knows of one conversation. Its messages
// refer to each other through it.
type conversation struct {
	id     uuid.UUID
	shared bool // writers of all kinds work on it; else it is for histories

	mu       sync.Mutex
	state    outcome
	deleted  outcome // refused while nobody asked for it
	messages map[uuid.UUID]*message
	order    []*message // as they were sent
	chains   int
	fork     *forkOrder // of a fork whose outcome isn't known
	forked   bool
}

// A forkOrder is what a fork will have, if it is made.
type forkOrder struct{ path []*message }

func newConversation(id uuid.UUID) *conversation {
	return &conversation{id: id, deleted: refused, messages: map[uuid.UUID]*message{}}
}

// add notes a message that is about to be sent. The caller holds mu.
func (c *conversation) add(m *message) {
	m.state, m.sentAt, m.depth = sent, time.Now(), 0
	if p := c.messages[m.parent]; p != nil {
		m.depth = p.depth + 1
	}
	c.messages[m.id] = m
	c.order = append(c.order, m)
}

// path gives the messages from the root to one. The caller holds mu.
func (c *conversation) path(id uuid.UUID) (path []*message) {
	for m := c.messages[id]; m != nil; m = c.messages[m.parent] {
		path = append(path, m)
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

// prunedBefore tells whether it was acknowledged before at that the message, or
// one above it, was pruned. The caller holds mu.
func (c *conversation) prunedBefore(m *message, at time.Time) bool {
	for ; m != nil; m = c.messages[m.parent] {
		if !m.prunedAt.IsZero() && m.prunedAt.Before(at) {
			return true
		}
	}
	return false
}

// mayBePruned tells whether anybody ever asked to prune the message or one
// above it. The caller holds mu.
func (c *conversation) mayBePruned(m *message) bool {
	for ; m != nil; m = c.messages[m.parent] {
		if !m.pruneSentAt.IsZero() {
			return true
		}
	}
	return false
}

// standing gives acknowledged messages that nobody is known to have pruned. The
// caller holds mu.
func (c *conversation) standing() (found []*message) {
	now := time.Now()
	for _, m := range c.order {
		if m.state == acknowledged && !c.prunedBefore(m, now) {
			found = append(found, m)
		}
	}
	return found
}

// acknowledge notes that messages are stored, and gives what is wrong with
// that. The caller holds mu.
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

// refuse notes that a server has no place for messages, because what they stand
// under isn't there, and gives what is wrong with that. It leaves open whether
// an earlier attempt was stored. The caller holds mu.
func (c *conversation) refuse(m *message) (wrong string) {
	if m.retried {
		m.state = unknown
	} else {
		m.state = refused
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

// fill makes the messages of a fork that was made. The caller holds mu.
func (c *conversation) fill(order *forkOrder) {
	c.forked = true
	parent := uuid.Nil
	for i, m := range order.path {
		id := uuid.NewSHA1(c.id, m.id[:])
		c.messages[id] = &message{
			id: id, parent: parent, mark: m.mark, role: m.role, content: m.content, answer: m.answer, depth: i,
			state: acknowledged, sentAt: m.sentAt, ackedAt: m.ackedAt,
		}
		c.order = append(c.order, c.messages[id])
		parent = id
	}
}
