package speed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Config says what to measure, and how thoroughly. Only Host is required.
type Config struct {
	Host   Host
	Seed   uint64        // of what is said
	Rounds int           // that each variant has its turn in; 0 is DefaultRounds
	Slice  time.Duration // that a turn takes; 0 is DefaultSlice
	// LargestDatabase is how many messages the largest database of growth has;
	// 0 is DefaultLargestDatabase. A million take some 5 minutes and 2 GB.
	LargestDatabase int
	Axes            []string // of growth; nil is Axes

	Quick  bool                             // small data and two short rounds: shows that everything runs, and no figure worth keeping
	Remark func(format string, args ...any) // told what is done; nil for none
}

// Defaults of a Config.
const (
	DefaultRounds = 30
	DefaultSlice  = 150 * time.Millisecond

	DefaultLargestDatabase = 5_000_000
)

// A Report is what was measured, by the part it belongs to.
type Report struct {
	Machine     Machine            `json:"machine"`
	Parts       map[string]Part    `json:"parts"`
	Growth      []Axis             `json:"growth,omitempty"`
	MemoryBytes map[string]float64 `json:"server_memory_bytes"` // at its peak, by part
}

// A Part is one kind of work.
type Part struct {
	Comparisons []Comparison `json:"comparisons"`
	Load        *Load        `json:"load,omitempty"` // of mixed
}

// Parts are what can be measured, in the order of [Run].
func Parts() []string { return slices.Clone(partNames) }

var partNames = []string{"append", "context", "transcript", "tree", "import", "mixed", "growth"}

// A session is one run.
type session struct {
	cfg    Config
	pace   pace
	corpus *corpus
	report *Report
	part   string
}

// Run measures parts, each on a new database with a server of its own. It
// takes about a minute for each part and half an hour for growth, and up to
// 15 GB on the database's disk; quick, seconds. With an error comes a report of
// what was measured before it.
func Run(ctx context.Context, cfg Config, parts ...string) (_ *Report, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("speed.Run(%v): %w", parts, err)
		}
	}()
	if cfg.Rounds == 0 {
		cfg.Rounds = DefaultRounds
	}
	if cfg.Slice == 0 {
		cfg.Slice = DefaultSlice
	}
	if cfg.LargestDatabase == 0 {
		cfg.LargestDatabase = DefaultLargestDatabase
	}
	if cfg.Axes == nil {
		cfg.Axes = Axes()
	}
	if cfg.Remark == nil {
		cfg.Remark = func(string, ...any) {}
	}
	texts := 4096
	if cfg.Quick {
		cfg.Rounds, cfg.Slice, texts = 2, time.Millisecond, 64
	}
	s := &session{
		cfg: cfg, pace: pace{cfg.Rounds, cfg.Slice}, corpus: newCorpus(cfg.Seed, texts),
		report: &Report{Parts: map[string]Part{}, MemoryBytes: map[string]float64{}},
	}
	work := map[string]func(context.Context, *rig) error{
		"append": s.append, "context": s.context, "transcript": s.transcript, "tree": s.tree, "import": s.imports, "mixed": s.mixed,
	}
	for _, part := range parts {
		cfg.Remark("%s", part)
		s.part = part
		if part == "growth" {
			err = s.growth(ctx)
		} else if work[part] == nil {
			err = fmt.Errorf("there is no part of this name")
		} else {
			err = s.onRig(ctx, work[part])
		}
		if err != nil {
			return s.report, fmt.Errorf("%s: %w", part, err)
		}
	}
	return s.report, nil
}

// onRig measures on a new database.
func (s *session) onRig(ctx context.Context, measure func(context.Context, *rig) error) error {
	r, err := newRig(ctx, s.cfg.Host)
	if err != nil {
		return err
	}
	if s.report.Machine.Postgres == "" {
		if s.report.Machine, err = describe(ctx, r.pool); err != nil {
			return errors.Join(err, r.close())
		}
	}
	err = measure(ctx, r)
	s.noteMemory(r)
	return errors.Join(err, r.close())
}

func (s *session) noteMemory(r *rig) {
	s.report.MemoryBytes[s.part] = max(s.report.MemoryBytes[s.part], r.meter.peak())
}

// add puts a comparison into the report.
func (s *session) add(c Comparison) {
	p := s.report.Parts[s.part]
	p.Comparisons = append(p.Comparisons, c)
	s.report.Parts[s.part] = p
	first := c.Results[0]
	beside := ""
	if ratio, ok := first.Ratios[nameSQL]; ok {
		beside = fmt.Sprintf(", %.2f times the SQL", ratio.P50.Median)
	}
	s.cfg.Remark("  %s, %d at once: %.3f ms%s; %.0f a second", c.Name, c.Workers, first.P50, beside, first.PerSecond)
}

// Has tells whether a part, or any of it, was measured.
func (r *Report) Has(part string) bool {
	if part == "growth" {
		return len(r.Growth) > 0
	}
	p := r.Parts[part]
	return len(p.Comparisons) > 0 || p.Load != nil
}

// size is a full run's size, or a quick one's.
func (s *session) size(full, quick int) int {
	if s.cfg.Quick {
		return quick
	}
	return full
}
