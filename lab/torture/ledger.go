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
	calls      []call // of an assistant
	answers    string // id of the call that a tool message answers
	pinned     bool
	metadata   string // compact JSON; "" where nobody has seen it yet
	reasoning  string
	chain      int // messages with the same number, over 0, are stored together or not at all
	depth      int

	createdAt time.Time // as the servers say; zero where nobody has seen it yet
	tokens    int       // as the servers say; 0 where nobody has seen it yet

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

// A conversation is what the ledger knows of one conversation. Its messages
// refer to each other through it.
type conversation struct {
	id     uuid.UUID
	tenant *tenant
	shared bool // writers of all kinds work on it; else it is for histories

	mu       sync.Mutex
	state    outcome
	deleted  outcome // refused while nobody asked for it
	messages map[uuid.UUID]*message
	order    []*message // as they were sent
	chains   int
	fork     *forkOrder // of a fork whose messages aren't known
	forked   bool

	title     string             // the last that was acknowledged
	titles    map[string]bool    // others that it may have, because a rename has no answer
	ever      *titleSet          // all that it may ever have had
	inherited *titleSet          // of a fork that nobody has seen: those of its source
	settings  string             // JSON, as it was sent
	origin    uuid.UUID          // the conversation that first had these settings and metadata
	renaming  sync.Mutex         // one rename at a time
	undone    map[uuid.UUID]bool // summaries
	summary   uuid.UUID          // the last that a check saw
}

// A titleSet is the titles that a conversation may ever have had.
type titleSet struct {
	mu  sync.Mutex
	set map[string]bool
}

func (t *titleSet) add(title string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set[title] = true
}

func (t *titleSet) has(title string) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.set[title]
}

// mayHave notes a title that is about to be sent. The caller holds mu.
func (c *conversation) mayHave(title string) {
	c.titles[title] = true
	c.ever.add(title)
}

// has notes the title that the conversation has. The caller holds mu.
func (c *conversation) has(title string) {
	c.title, c.inherited = title, nil
	delete(c.titles, title)
	c.ever.add(title)
}

// A forkOrder is what a fork will have, if it is made.
type forkOrder struct{ path []*message }

func newConversation(id uuid.UUID) *conversation {
	return &conversation{
		id: id, origin: id, deleted: refused, messages: map[uuid.UUID]*message{},
		titles: map[string]bool{}, ever: &titleSet{set: map[string]bool{}}, undone: map[uuid.UUID]bool{},
	}
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

// fill makes the messages of a fork that was made. Their ids are the servers'
// choice: a fork that nobody has worked on is one path, and the tree says which
// message stands at which depth of it. One that isn't there gets an id of its
// own, and so is lost. The caller holds mu.
func (c *conversation) fill(order *forkOrder, tree treeAnswer) {
	c.forked, c.fork = true, nil
	at := map[int]uuid.UUID{}
	for _, n := range tree.Data {
		if n.Kind == "message" {
			at[n.Depth] = n.ID
		}
	}
	parent := uuid.Nil
	for i, m := range order.path {
		id, ok := at[i]
		if !ok {
			id = uuid.New()
		}
		copied := *m // with its text, pin, metadata and times
		copied.id, copied.parent, copied.depth, copied.chain = id, parent, i, 0
		copied.state, copied.retried, copied.pending = acknowledged, false, false
		copied.pruneSentAt, copied.prunedAt, copied.prunes = time.Time{}, time.Time{}, 0
		c.messages[id] = &copied
		c.order = append(c.order, &copied)
		parent = id
	}
}

// gone tells whether nobody should work on the conversation any more, or yet.
func (c *conversation) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state != acknowledged || c.deleted != refused
}

// someSummary is the id of a summary that was there, of none where there wasn't
// any. The caller holds mu.
func (c *conversation) someSummary() uuid.UUID {
	if c.summary == uuid.Nil {
		return uuid.New()
	}
	return c.summary
}

// below gives the messages of a subtree, its root included. The caller holds
// mu.
func (c *conversation) below(top *message) (found []*message) {
	for _, m := range c.order {
		for at := m; at != nil; at = c.messages[at.parent] {
			if at == top {
				found = append(found, m)
				break
			}
		}
	}
	return found
}

// known is a copy of a path, so that messages may be read without mu while
// others note what they learn of them. The caller holds mu.
func known(path []*message) []*message {
	copies := make([]*message, len(path))
	for i, m := range path {
		copied := *m
		copies[i] = &copied
	}
	return copies
}
