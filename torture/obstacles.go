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

// last is what stood in a server's way last. Where it still does, over is zero:
// the server got past it. ok is false where nothing ever did, or something that
// only slows it still does.
func (o *obstacles) last(server int) (kind string, begin, over time.Time, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
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
		if mine.end.After(over) {
			kind, begin, over, ok = mine.kind, mine.begin, mine.end, true
		}
	}
	return kind, begin, over, ok
}
