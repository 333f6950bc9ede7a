package jobs

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/summarize"
)

// headroomCache remembers for heads of branches how far they are from a trigger.
// It forgets the older half when it is full. A forgotten head only costs an
// assessment of its branch. So does an entry of a minute ago: settings may have
// changed since, or a summary may have been undone.
type headroomCache struct {
	mu       sync.Mutex
	now, old map[headKey]headroom
}

type headKey struct{ conversation, head uuid.UUID }

// headroom is how far a head is from a trigger, and until when this is trusted.
type headroom struct {
	summarize.Room
	until time.Time
}

const (
	headroomCacheSize = 8192
	headroomAge       = time.Minute
	queuedHeadroomAge = time.Second // of a branch that has a job, which may end in another server
)

// below gives the headroom of what is appended to a parent, and whether it is
// surely not due. It remembers nothing: an append may be refused, and its id then
// be that of another message.
func (c *headroomCache) below(conversation, parent uuid.UUID, tokens, messages int) (known headroom, quiet bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := headKey{conversation, parent}
	known, ok := c.now[key]
	if !ok {
		known, ok = c.old[key]
	}
	known.Room = known.Less(tokens, messages)
	return known, ok && known.Some() && time.Now().Before(known.until)
}

// set remembers the headroom of a head for so long.
func (c *headroomCache) set(conversation, head uuid.UUID, left summarize.Room, age time.Duration) {
	c.put(headKey{conversation, head}, headroom{left, time.Now().Add(age)})
}

func (c *headroomCache) put(key headKey, known headroom) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || len(c.now) >= headroomCacheSize {
		c.now, c.old = make(map[headKey]headroom, headroomCacheSize), c.now
	}
	c.now[key] = known
}
