package summarize

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// frontier remembers for heads of branches how far they are from a trigger.
// It forgets the older half when it is full, and a forgotten head only costs a
// look at its branch. So does one of a minute ago: settings may have changed
// since, or a summary may have been undone.
type frontier struct {
	mu       sync.Mutex
	now, old map[headKey]room
}

type headKey struct{ conversation, head uuid.UUID }

// room is what may be added before a compaction is due.
type room struct {
	tokens, messages int
	looked           time.Time // when the branch was looked at
}

// some tells whether there is any.
func (r room) some() bool { return r.tokens > 0 && r.messages > 0 }

const (
	frontierSize = 8192
	frontierAge  = time.Minute
	queuedAge    = time.Second
)

// below gives the room of what is appended to a parent, and whether it is
// surely not due. It remembers nothing: an append may be refused, and its id then
// be that of another message.
func (f *frontier) below(conversation, parent uuid.UUID, tokens, messages int) (left room, quiet bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := headKey{conversation, parent}
	left, ok := f.now[key]
	if !ok {
		left, ok = f.old[key]
	}
	left.tokens -= tokens
	left.messages -= messages
	return left, ok && left.some() && time.Since(left.looked) <= frontierAge
}

func (f *frontier) set(conversation, head uuid.UUID, left room) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(headKey{conversation, head}, left)
}

func (f *frontier) put(key headKey, left room) {
	if f.now == nil || len(f.now) >= frontierSize {
		f.now, f.old = make(map[headKey]room, frontierSize), f.now
	}
	f.now[key] = left
}

// distance is how much may be added to a branch before the settings may ask
// for a compaction. A branch past its trigger where there is nothing to fold
// yet is looked at again with the next message.
func distance(v tree.View, s Settings) room {
	return roomBeside(v.Prefix, contextTokens(v), len(v.Tail), s)
}

// roomBeside is the room of a context of so many tokens, its prefix included,
// and messages in its tail.
func roomBeside(prefix []tree.PathMessage, context, tail int, s Settings) room {
	trigger := s.beside(tree.Tokens(prefix)).Trigger
	left := room{tokens: trigger - context, messages: 1 << 30, looked: time.Now()}
	if s.EveryNMessages > 0 {
		left.messages = s.EveryNMessages - tail
	}
	if s.Compaction != ModeAuto {
		left.tokens = max(1, trigger/8) // then looks again, as the settings may change
	}
	return left
}

// whileQueued is the room of a branch that has a job. It is little, and doesn't
// last: the job may end in another server, which tells nobody.
func whileQueued(s Settings) room {
	left := room{tokens: s.Budget().Trigger / 8, messages: 1 << 30, looked: time.Now().Add(queuedAge - frontierAge)}
	if s.EveryNMessages > 0 {
		left.messages = s.EveryNMessages / 8
	}
	return left
}
