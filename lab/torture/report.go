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
	Seed          uint64
	Seconds       float64 // of the whole run, checks included
	Conversations int
	Faults        map[string]int
	Checks        map[string]int // how much of each thing was compared
	Missed        []string       // what too little was checked of
	Broken        int            // promises that were broken
	Violations    []Violation    // the first maxViolations of these
}

// A Violation is a promise broken.
type Violation struct {
	Kind, Detail string
	At           time.Time
}

// Failed tells whether a promise was broken, or too little was checked.
func (r Report) Failed() bool { return r.Broken > 0 || len(r.Missed) > 0 }

// least is what a run must check at least. A run that checked less shows nothing.
var least = map[string]int{
	"messages in answers to appends": 50, "transcripts": 10, "contexts": 30, "contexts with a summary": 5, "pinned messages folded": 1, "calls with their results": 10,
	"texts of summaries": 5, "prompts of replies": 5, "prompts of summaries": 5, "prunes": 3, "deleted conversations": 1, "answers streamed": 5,
	"streams of answers read on": 3, "searches": 5, "recalls": 3, "requests for what another tenant has": 50, "turns over OpenAI's API": 5,
	"events of conversations": 20, "feeds that end with the head": 1, "trees": 6,
}

// maxViolations are listed; a broken promise tends to show many times.
const maxViolations = 50

// A recorder fills a report in, from several goroutines.
type recorder struct {
	log    *slog.Logger
	broken func() // called for each promise that is broken

	mu     sync.Mutex
	report Report
}

func newRecorder(log *slog.Logger) *recorder {
	return &recorder{log: log, broken: func() {}, report: Report{Faults: map[string]int{}, Checks: map[string]int{}, Violations: []Violation{}}}
}

func (r *recorder) add(to map[string]int, what string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to[what] += n
}

func (r *recorder) fault(kind string)          { r.add(r.report.Faults, kind, 1) }
func (r *recorder) checked(what string, n int) { r.add(r.report.Checks, what, n) }

func (r *recorder) violate(kind, format string, args ...any) {
	v := Violation{kind, fmt.Sprintf(format, args...), time.Now()}
	r.log.Error("a promise is broken", "kind", kind, "detail", v.Detail)
	r.mu.Lock()
	if r.report.Broken++; len(r.report.Violations) < maxViolations {
		r.report.Violations = append(r.report.Violations, v)
	}
	r.mu.Unlock()
	r.broken()
}

// missed says what too little was checked of so far.
func (r *recorder) missed() (missed []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(least)) {
		if n := r.report.Checks[what]; n < least[what] {
			missed = append(missed, fmt.Sprintf("%s: %d, and at least %d are needed", what, n, least[what]))
		}
	}
	return missed
}

// Print writes the report for people.
func (r Report) Print(w io.Writer) {
	fmt.Fprintf(w, "seed %d: %.0f s, %d conversations\n", r.Seed, r.Seconds, r.Conversations)
	for _, part := range []struct {
		title  string
		counts map[string]int
	}{{"faults", r.Faults}, {"checked", r.Checks}} {
		fmt.Fprintln(w, part.title)
		for _, what := range slices.Sorted(maps.Keys(part.counts)) {
			fmt.Fprintf(w, "  %-40s %8d\n", what, part.counts[what])
		}
	}
	for _, what := range r.Missed {
		fmt.Fprintf(w, "too little was checked: %s\n", what)
	}
	if r.Broken == 0 {
		fmt.Fprintln(w, "no promise was broken")
		return
	}
	fmt.Fprintf(w, "%d promises broken, the first %d are below; --seed %d has the same order of faults\n", r.Broken, len(r.Violations), r.Seed)
	for _, v := range r.Violations {
		fmt.Fprintf(w, "  %s %s: %s\n", v.At.Format("15:04:05.000"), v.Kind, v.Detail)
	}
}
