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
	Seed           uint64         `json:"seed"`
	Began          time.Time      `json:"began"`
	Seconds        float64        `json:"seconds"`       // of the whole run, checks included
	Conversations  int            `json:"conversations"` // made in all, forks included
	Faults         map[string]int `json:"faults"`
	Operations     map[string]int `json:"operations"` // by kind and outcome
	Answers        map[string]int `json:"answers"`    // other than success, by status and code
	Checks         map[string]int `json:"checks"`     // how much of each thing was compared
	Missed         []string       `json:"missed"`     // what too little was checked of
	Violations     []Violation    `json:"violations"`
	MoreViolations int            `json:"more_violations"` // not listed, as there are too many
}

// A Violation is a promise broken.
type Violation struct {
	Kind   string    `json:"kind"`
	Detail string    `json:"detail"`
	At     time.Time `json:"at"`
}

// A finding is a violation that a check returns.
type finding struct{ kind, detail string }

// Failed tells whether a promise was broken, or too little was checked.
func (r Report) Failed() bool { return len(r.Violations) > 0 || len(r.Missed) > 0 }

// least is what a run must check at least. A run that checked less shows nothing,
// and has failed.
var least = map[string]int{
	"messages in answers to appends": 50, "transcripts": 10, "contexts": 30, "contexts with a summary": 5, "pinned messages folded": 1, "calls with their results": 10,
	"texts of summaries": 5, "prompts of replies": 5, "prompts of summaries": 5, "prunes": 3, "deleted conversations": 1, "forks": 2, "answers streamed": 5,
	"streams of answers read on": 3, "searches": 5, "recalls": 3, "requests for what another tenant has": 50, "turns over OpenAI's API": 5,
	"events of conversations": 20, "pages that show the head": 2, "events of tenants": 20, "trees": 6,
}

// A recorder fills a report in, from several goroutines.
type recorder struct {
	log    *slog.Logger
	broken func() // called for each promise that is broken

	mu     sync.Mutex
	report Report
}

func newRecorder(log *slog.Logger) *recorder {
	return &recorder{log: log, broken: func() {}, report: Report{
		Faults: map[string]int{}, Operations: map[string]int{}, Answers: map[string]int{}, Checks: map[string]int{}, Violations: []Violation{},
	}}
}

func (r *recorder) count(change func(*Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.report)
}

func (r *recorder) fault(kind string)           { r.count(func(p *Report) { p.Faults[kind]++ }) }
func (r *recorder) answer(code string)          { r.count(func(p *Report) { p.Answers[code]++ }) }
func (r *recorder) checked(what string, n int)  { r.count(func(p *Report) { p.Checks[what] += n }) }
func (r *recorder) checkedAll(n map[string]int) { r.count(func(p *Report) { addAll(p.Checks, n) }) }

func addAll(to, from map[string]int) {
	for what, n := range from {
		to[what] += n
	}
}

// operation counts one that ended, of so many attempts.
func (r *recorder) operation(kind string, o outcome, attempts int) {
	r.count(func(p *Report) {
		p.Operations[kind+", "+[...]string{"sent", "acknowledged", "refused", "unknown"}[o]]++
		p.Operations[kind+", attempts"] += attempts
	})
}

// maxViolations are listed; a broken promise tends to show many times.
const maxViolations = 50

func (r *recorder) violate(kind, format string, args ...any) {
	v := Violation{kind, fmt.Sprintf(format, args...), time.Now()}
	r.log.Error("a promise is broken", "kind", kind, "detail", v.Detail)
	r.count(func(p *Report) {
		if len(p.Violations) == maxViolations {
			p.MoreViolations++
			return
		}
		p.Violations = append(p.Violations, v)
	})
	r.broken()
}

func (r *recorder) findings(found []finding) {
	for _, f := range found {
		r.violate(f.kind, "%s", f.detail)
	}
}

// missed says what too little was checked of so far.
func (r *recorder) missed() (missed []string) {
	r.count(func(p *Report) {
		for _, what := range slices.Sorted(maps.Keys(least)) {
			if p.Checks[what] < least[what] {
				missed = append(missed, fmt.Sprintf("%s: %d, and at least %d are needed", what, p.Checks[what], least[what]))
			}
		}
	})
	return missed
}

// Print writes the report for people.
func (r Report) Print(w io.Writer) {
	fmt.Fprintf(w, "seed %d: %.0f s, %d conversations\n", r.Seed, r.Seconds, r.Conversations)
	for _, part := range []struct {
		title  string
		counts map[string]int
	}{{"faults", r.Faults}, {"operations", r.Operations}, {"answers other than success", r.Answers}, {"checked", r.Checks}} {
		fmt.Fprintf(w, "\n%s\n", part.title)
		for _, what := range slices.Sorted(maps.Keys(part.counts)) {
			fmt.Fprintf(w, "  %-40s %8d\n", what, part.counts[what])
		}
	}
	fmt.Fprintln(w)
	for _, what := range r.Missed {
		fmt.Fprintf(w, "too little was checked: %s\n", what)
	}
	if len(r.Violations) == 0 {
		fmt.Fprintf(w, "no promise was broken\n")
		return
	}
	fmt.Fprintf(w, "%d promises broken; --seed %d has the same order of faults\n", len(r.Violations)+r.MoreViolations, r.Seed)
	for _, v := range r.Violations {
		fmt.Fprintf(w, "  %s %s: %s\n", v.At.Format("15:04:05.000"), v.Kind, v.Detail)
	}
	if r.MoreViolations > 0 {
		fmt.Fprintf(w, "  and %d more\n", r.MoreViolations)
	}
}
