package torture

import (
	"testing"
	"time"
)

// How long a server wasn't ready is measured from the end of what stood in its
// way, or from when it was found not ready, whichever is later.
func TestLastObstacle(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, test := range []struct {
		name  string
		list  []*obstacle
		since time.Time
		kind  string
		over  time.Time
		ok    bool
	}{
		{"nothing, when it starts", nil, time.Time{}, "", time.Time{}, false},
		{"nothing at all", nil, ago(time.Second), untouched, ago(time.Second), true},
		{"a kill that it noticed", []*obstacle{{"program killed", 0, ago(3 * time.Second), ago(2 * time.Second)}}, ago(3 * time.Second), "program killed", ago(2 * time.Second), true},
		{"a kill that it noticed late", []*obstacle{{"Postgres killed", everyServer, ago(9 * time.Second), ago(8 * time.Second)}}, ago(time.Second), "Postgres killed", ago(time.Second), true},
		{"a kill long ago", []*obstacle{{"program killed", 0, ago(4 * time.Minute), ago(4 * time.Minute)}}, ago(time.Second), untouched, ago(time.Second), true},
		{"a kill of the other server", []*obstacle{{"program killed", 1, ago(3 * time.Second), ago(2 * time.Second)}}, ago(3 * time.Second), untouched, ago(3 * time.Second), true},
		{"a cut that still stands", []*obstacle{{"database link cut", 0, ago(3 * time.Second), time.Time{}}}, ago(2 * time.Second), "database link cut", time.Time{}, true},
		{"a link that is still slow", []*obstacle{{"database link slow", 0, ago(3 * time.Second), time.Time{}}}, ago(2 * time.Second), "", time.Time{}, false},
		{"the later of two", []*obstacle{
			{"program killed", 0, ago(6 * time.Second), ago(5 * time.Second)}, {"Postgres killed", everyServer, ago(4 * time.Second), ago(2 * time.Second)},
		}, ago(6 * time.Second), "Postgres killed", ago(2 * time.Second), true},
		{"the later of two, which ended first", []*obstacle{
			{"Postgres killed", everyServer, ago(4 * time.Second), ago(2 * time.Second)}, {"program killed", 0, ago(6 * time.Second), ago(5 * time.Second)},
		}, ago(6 * time.Second), "Postgres killed", ago(2 * time.Second), true},
	} {
		o := &obstacles{list: test.list}
		kind, _, over, ok := o.last(0, test.since)
		if ok != test.ok || ok && (kind != test.kind || !over.Equal(test.over)) {
			t.Errorf("%s: %q, over %s ago, %v", test.name, kind, now.Sub(over), ok)
		}
	}
}
