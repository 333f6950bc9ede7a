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
	end    time.Time
}

const everyServer = -1

// begin notes an obstacle, until end is called.
func (o *obstacles) begin(kind string, server int) (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	mine := &obstacle{kind: kind, server: server}
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

// last is what stood in a server's way last, and when it ended; ok is false
// where something still does, or nothing ever did.
func (o *obstacles) last(server int) (kind string, end time.Time, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, mine := range o.list {
		if mine.server != everyServer && mine.server != server {
			continue
		}
		if mine.end.IsZero() {
			return "", time.Time{}, false
		}
		if mine.end.After(end) {
			kind, end, ok = mine.kind, mine.end, true
		}
	}
	return kind, end, ok
}
