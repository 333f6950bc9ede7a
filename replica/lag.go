package replica

import (
	"time"

	"github.com/coppice-chat/coppice/db"
)

// keptSamples are those of ten minutes, twice the largest bound.
const keptSamples = 600

// lag tells how old the state of a replica is, by where the primary's log ended
// when. A primary that writes nothing makes no replica old.
type lag struct{ samples []sample }

type sample struct {
	at  time.Time
	end db.Position
}

// sample notes where the primary's log ended at a time.
func (l *lag) sample(at time.Time, end db.Position) {
	if n := len(l.samples); n > 0 && l.samples[n-1].end == end {
		l.samples[n-1].at = at
		return
	}
	if l.samples = append(l.samples, sample{at, end}); len(l.samples) > keptSamples {
		l.samples = l.samples[1:]
	}
}

// of returns how old the state is that a replica shows which has replayed up to a
// position; at least so old, where it is from before the first sample.
func (l *lag) of(now time.Time, replayed db.Position) time.Duration {
	for i := len(l.samples) - 1; i > 0; i-- {
		if l.samples[i].end <= replayed {
			l.samples = l.samples[i:] // a replica only goes on
			break
		}
	}
	switch n := len(l.samples); {
	case n == 0, l.samples[n-1].end <= replayed:
		return 0
	}
	return now.Sub(l.samples[0].at)
}
