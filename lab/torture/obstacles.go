package torture

import (
	"sync"
	"time"
)

// obstacles are the things that keep servers from being ready.
type obstacles struct {
	mu   sync.Mutex
	list []*obstacle
}

// An obstacle stands in the way of one server, or of all.
type obstacle struct {
	kind   string
	server int // everyServer for all
	begin  time.Time
	end    time.Time // zero while it stands
}

const everyServer = -1

// begin notes an obstacle, until end is called.
func (o *obstacles) begin(kind string, server int) (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	mine := &obstacle{kind: kind, server: server, begin: time.Now()}
	kept := o.list[:0] // what ended long ago is of no use
	for _, other := range o.list {
		if other.end.IsZero() || time.Since(other.end) < 5*time.Minute {
			kept = append(kept, other)
		}
	}
	o.list = append(kept, mine)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		mine.end = time.Now()
	}
}

// untouched is what a server is late after that nothing was done to.
const untouched = "nothing that was done"

// reach is for how long an obstacle that is over may still make a server notice
// that it isn't ready: connections that broke meanwhile are found when they are
// used.
const reach = 10 * time.Second

// last is what stood in the way of a server that wasn't ready from since on.
// The server had its way free from over on: when the obstacle ended, or, where
// that was before, when the server was found not ready. An obstacle that ended
// long before has nothing to do with it. Where the obstacle still stands, over
// is zero: the server got past it. ok is false where something that only slows
// the server does.
func (o *obstacles) last(server int, since time.Time) (kind string, begin, over time.Time, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kind, begin, over, ok = untouched, since, since, !since.IsZero()
	for _, mine := range o.list {
		if mine.server != everyServer && mine.server != server {
			continue
		}
		if mine.end.IsZero() {
			if mine.kind == "database link slow" || mine.kind == "database link narrow" {
				return "", begin, over, false
			}
			return mine.kind, mine.begin, time.Time{}, true
		}
		if mine.end.After(since.Add(-reach)) && (kind == untouched || mine.end.After(over)) {
			kind, begin, over, ok = mine.kind, mine.begin, mine.end, true
		}
	}
	if over.Before(since) {
		over = since
	}
	return kind, begin, over, ok
}
