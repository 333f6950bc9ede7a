package jobs

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/summarize"
)

// frontier remembers for heads of branches how far they are from a trigger.
// It forgets the older half when it is full, and a forgotten head only costs a
// look at its branch. So does one of a minute ago: settings may have changed
// since, or a summary may have been undone.
type frontier struct {
	mu       sync.Mutex
	now, old map[headKey]entry
}

type headKey struct{ conversation, head uuid.UUID }

// An entry is the room of a head, and how long it is taken for true.
type entry struct {
	summarize.Room
	until time.Time
}

const (
	frontierSize = 8192
	frontierAge  = time.Minute
	queuedAge    = time.Second // of a branch that has a job, which may end in another server
)

// below gives the room of what is appended to a parent, and whether it is
// surely not due. It remembers nothing: an append may be refused, and its id then
// be that of another message.
func (f *frontier) below(conversation, parent uuid.UUID, tokens, messages int) (left entry, quiet bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := headKey{conversation, parent}
	left, ok := f.now[key]
	if !ok {
		left, ok = f.old[key]
	}
	left.Room = left.Less(tokens, messages)
	return left, ok && left.Some() && time.Now().Before(left.until)
}

// set remembers the room of a head for so long.
func (f *frontier) set(conversation, head uuid.UUID, left summarize.Room, age time.Duration) {
	f.put(headKey{conversation, head}, entry{left, time.Now().Add(age)})
}

func (f *frontier) put(key headKey, left entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now == nil || len(f.now) >= frontierSize {
		f.now, f.old = make(map[headKey]entry, frontierSize), f.now
	}
	f.now[key] = left
}
