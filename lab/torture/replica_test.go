package torture

import (
	"net/http"
	"testing"
	"time"
)

// Of two writes, one after the other, a client says the later one's position; of
// writes at the same time it says both. It says none of another tenant's.
func TestPositions(t *testing.T) {
	t.Parallel()
	p, one, other := newPositions(), &tenant{}, &tenant{}
	says := func(t *tenant) string {
		req := &http.Request{Header: http.Header{}}
		p.say(t, req)
		return req.Header.Get(positionHeader)
	}
	answer := func(t *tenant, sent time.Time, token string) {
		p.heard(t, sent, http.Header{positionHeader: {token}}, http.Header{})
	}
	begin := time.Now()
	if says(one) != "" {
		t.Error("a position before any write")
	}
	answer(one, begin, "a")
	answer(one, begin, "b")
	if got := says(one); got != "a, b" {
		t.Errorf("after two writes at once: %q", got)
	}
	answer(one, time.Now(), "c")
	answer(nil, time.Now(), "d")
	if got := says(one); got != "c" || says(other) != "" {
		t.Errorf("after a later write: %q, and of another tenant %q", got, says(other))
	}
}

// TestRunWithReplica is a short run of three servers that read from a replica.
func TestRunWithReplica(t *testing.T) {
	t.Parallel()
	cfg := shortRun(t)
	cfg.Servers, cfg.Replica = 3, true
	report, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Violations {
		t.Errorf("%s: %s", v.Kind, v.Detail)
	}
	for _, f := range report.Missed {
		t.Errorf("too little was checked: %s: %d, and at least %d are needed", f.Name, f.Got, f.Need)
	}
	if report.Faults["replica killed"] != cfg.Kills || report.Reads["replica"] == 0 {
		t.Errorf("%d kills of the replica, and the reads went to %v", report.Faults["replica killed"], report.Reads)
	}
	checkEmpty(t, cfg.Dir)
}
