package search

import (
	"container/list"
	"sync"

	"github.com/google/uuid"
)

// A key names a conversation. The tenant is part of it, so that one who guesses
// the id of another's conversation doesn't even make its index stay.
type key struct {
	tenant string
	id     uuid.UUID
}

// A cache holds the conversations that were asked about last, as far as their
// indexes together stay below a bound.
type cache struct {
	mu       sync.Mutex
	maxBytes int64
	bytes    int64
	byKey    map[key]*list.Element
	recent   *list.List // of *conversation, the one used last first
}

func newCache(maxBytes int64) *cache {
	return &cache{maxBytes: maxBytes, byKey: map[key]*list.Element{}, recent: list.New()}
}

func (c *cache) get(k key) *conversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[k]; ok {
		c.recent.MoveToFront(e)
		return e.Value.(*conversation)
	}
	conv := newConversation(k)
	c.byKey[k] = c.recent.PushFront(conv)
	return conv
}

// used counts what a conversation takes after a question, and drops those not
// used for longest where all together take too much; where one alone does, only
// that one. One that others still use is theirs until they are done.
func (c *cache) used(conv *conversation) {
	bytes := conv.bytes()
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[conv.key]
	if !ok || e.Value != conv {
		return // dropped meanwhile
	}
	c.bytes += bytes - conv.counted
	conv.counted = bytes
	if bytes > c.maxBytes {
		c.drop(e)
	}
	for c.bytes > c.maxBytes {
		c.drop(c.recent.Back())
	}
}

func (c *cache) stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{Conversations: c.recent.Len(), Bytes: c.bytes}
}

func (c *cache) drop(e *list.Element) {
	conv := c.recent.Remove(e).(*conversation)
	delete(c.byKey, conv.key)
	c.bytes -= conv.counted
}
