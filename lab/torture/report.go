package torture

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Report says what a run did, and what came of it.
type Report struct {
	Seed           uint64                `json:"seed"`
	Seconds        float64               `json:"seconds"` // of the whole run, checks included
	Began          time.Time             `json:"began"`
	Writers        int                   `json:"writers"`
	Conversations  int                   `json:"conversations"` // made in all, forks included
	Faults         map[string]int        `json:"faults"`
	Operations     map[string]Operations `json:"operations"`
	Answers        map[string]int        `json:"answers"`    // other than success, by status and code
	Ready          map[string]Times      `json:"ready"`      // from the end of each kind of fault until a server was ready again
	Outage         map[string]Times      `json:"outage"`     // from the beginning of each kind of fault until a server was ready again
	LateReady      int                   `json:"late_ready"` // of these, how many took longer than ReadyTarget
	Reads          map[string]int        `json:"reads"`      // that a replica may answer, by where they went
	Exits          map[string]int        `json:"exits"`      // of servers that ended by themselves, by reason
	Jobs           Jobs                  `json:"jobs"`
	Checks         Checks                `json:"checks"`
	Histories      Histories             `json:"histories"`
	Soak           []Gauge               `json:"soak,omitempty"` // what servers held, of a soak
	Missed         []Floor               `json:"missed"`         // what too little was checked of
	Violations     []Violation           `json:"violations"`
	MoreViolations int                   `json:"more_violations"` // not listed, as there are too many
}

// Operations counts those of one kind.
type Operations struct {
	Sent         int `json:"sent"`
	Acknowledged int `json:"acknowledged"`
	Refused      int `json:"refused"`
	Unknown      int `json:"unknown"`
	Attempts     int `json:"attempts"` // requests, those sent again included
}

// Times are the spread of durations.
type Times struct {
	Count int           `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`

	all []time.Duration
}

func (t Times) with(d time.Duration) Times {
	t.all = append(t.all, d)
	slices.Sort(t.all)
	t.Count = len(t.all)
	t.P50, t.P99, t.Max = t.all[t.Count/2], t.all[t.Count*99/100], t.all[t.Count-1]
	return t
}

// Jobs are compactions in the background.
type Jobs struct {
	Seen        int   `json:"seen"`
	Interrupted int   `json:"interrupted"` // running on a server when that was killed, or Postgres was
	Done        Times `json:"done"`        // from the last interruption of each until it was done
	Unfinished  int   `json:"unfinished"`  // at the end
}

// Histories counts what was checked for linearizability.
type Histories struct {
	Checked    int `json:"checked"`
	Operations int `json:"operations"`
	Undecided  int `json:"undecided"` // given up after a time limit
}

// A Violation is a promise broken.
type Violation struct {
	Kind   string    `json:"kind"`
	Detail string    `json:"detail"`
	At     time.Time `json:"at"`
}

// Failed tells whether a promise was broken, a soak not flat, or too little
// checked.
func (r Report) Failed() bool {
	for _, g := range r.Soak {
		if !g.Flat {
			return true
		}
	}
	return len(r.Violations) > 0 || len(r.Missed) > 0
}

// A recorder fills a report in, from several goroutines.
type recorder struct {
	log *slog.Logger

	mu     sync.Mutex
	broken func() // told of each promise that is broken
	report Report
}

func newRecorder(log *slog.Logger) *recorder {
	return &recorder{log: log, report: Report{
		Faults: map[string]int{}, Operations: map[string]Operations{}, Answers: map[string]int{}, Ready: map[string]Times{}, Outage: map[string]Times{}, Exits: map[string]int{}, Reads: map[string]int{}, Violations: []Violation{},
	}}
}

func (r *recorder) count(change func(*Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.report)
}

func (r *recorder) fault(kind string) { r.count(func(p *Report) { p.Faults[kind]++ }) }

// operation counts one that ended, of so many attempts.
func (r *recorder) operation(kind string, o outcome, attempts int) {
	r.count(func(p *Report) {
		n := p.Operations[kind]
		n.Sent++
		n.Attempts += attempts
		switch o {
		case acknowledged:
			n.Acknowledged++
		case refused:
			n.Refused++
		default:
			n.Unknown++
		}
		p.Operations[kind] = n
	})
}

// maxViolations are listed; a broken promise tends to show many times.
const maxViolations = 50

// onViolation has broken called for each promise that is broken.
func (r *recorder) onViolation(broken func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = broken
}

func (r *recorder) violate(kind, format string, args ...any) {
	v := Violation{kind, fmt.Sprintf(format, args...), time.Now()}
	r.log.Error("a promise is broken", "kind", kind, "detail", v.Detail)
	r.mu.Lock()
	broken := r.broken
	r.mu.Unlock()
	if broken != nil {
		defer broken()
	}
	r.count(func(p *Report) {
		if len(p.Violations) == maxViolations {
			p.MoreViolations++
			return
		}
		p.Violations = append(p.Violations, v)
	})
}

func (r *recorder) findings(found []finding) {
	for _, f := range found {
		r.violate(f.kind, "%s", f.detail)
	}
}

// readyAgain notes how long a server took after the last thing in its way.
func (r *recorder) readyAgain(p *program, after string, took, outage time.Duration) {
	r.count(func(report *Report) {
		report.Ready[after] = report.Ready[after].with(took)
		report.Outage[after] = report.Outage[after].with(outage)
		if took > ReadyTarget {
			report.LateReady++
		}
	})
	if took > ReadyTarget {
		r.log.Warn("a server was ready late", "server", p.name, "after", after, "took", took)
	}
	if took > readyBound {
		r.violate("not ready", "server %s was ready %s after: %s", p.name, took, after)
	}
}

// Print writes the report for people.
func (r Report) Print(w io.Writer) {
	fmt.Fprintf(w, "seed %d: %.0f s, %d writers, %d conversations\n", r.Seed, r.Seconds, r.Writers, r.Conversations)
	fmt.Fprintf(w, "\nfaults\n")
	for _, kind := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(w, "  %-34s %8d\n", kind, r.Faults[kind])
	}
	if len(r.Reads) > 0 {
		fmt.Fprintf(w, "\nreads\n")
	}
	for _, to := range slices.Sorted(maps.Keys(r.Reads)) {
		fmt.Fprintf(w, "  %-34s %8d\n", to, r.Reads[to])
	}
	fmt.Fprintf(w, "\noperations %25s %8s %8s %8s %8s\n", "sent", "acknowl.", "refused", "unknown", "attempts")
	for _, kind := range slices.Sorted(maps.Keys(r.Operations)) {
		n := r.Operations[kind]
		fmt.Fprintf(w, "  %-24s %9d %8d %8d %8d %8d\n", kind, n.Sent, n.Acknowledged, n.Refused, n.Unknown, n.Attempts)
	}
	fmt.Fprintf(w, "\nanswers other than success\n")
	for _, code := range slices.Sorted(maps.Keys(r.Answers)) {
		fmt.Fprintf(w, "  %-34s %8d\n", code, r.Answers[code])
	}
	fmt.Fprintf(w, "\nready again after %18s %8s %8s %8s\n", "times", "p50", "p99", "max")
	for _, kind := range slices.Sorted(maps.Keys(r.Ready)) {
		printTimes(w, kind, r.Ready[kind])
	}
	fmt.Fprintf(w, "  later than %s: %d\n", ReadyTarget, r.LateReady)
	fmt.Fprintf(w, "\nthe same from its beginning %13s %8s %8s %8s\n", "times", "p50", "p99", "max")
	for _, kind := range slices.Sorted(maps.Keys(r.Outage)) {
		printTimes(w, kind, r.Outage[kind])
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Exits)) {
		fmt.Fprintf(w, "  server ended %d times: %s\n", r.Exits[reason], reason)
	}
	fmt.Fprintf(w, "\ncompactions in the background: %d seen, %d interrupted, %d unfinished at the end\n", r.Jobs.Seen, r.Jobs.Interrupted, r.Jobs.Unfinished)
	if r.Jobs.Done.Count > 0 {
		printTimes(w, "interrupted, until done", r.Jobs.Done)
	}
	r.Checks.print(w)
	fmt.Fprintf(w, "linearizability: %d histories of %d operations, %d undecided\n", r.Histories.Checked, r.Histories.Operations, r.Histories.Undecided)
	printSoak(w, r.Soak)
	fmt.Fprintln(w)
	printFloors(w, r.Missed)
	if len(r.Violations) == 0 {
		fmt.Fprintf(w, "no promise was broken\n")
		return
	}
	fmt.Fprintf(w, "%d promises broken; the same flags with --seed %d try again\n", len(r.Violations)+r.MoreViolations, r.Seed)
	for _, v := range r.Violations {
		fmt.Fprintf(w, "  %s %s: %s\n", v.At.Format("15:04:05.000"), v.Kind, v.Detail)
	}
	if r.MoreViolations > 0 {
		fmt.Fprintf(w, "  and %d more\n", r.MoreViolations)
	}
}

func printTimes(w io.Writer, kind string, t Times) {
	fmt.Fprintf(w, "  %-24s %9d %8s %8s %8s\n", kind, t.Count, round(t.P50), round(t.P99), round(t.Max))
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
