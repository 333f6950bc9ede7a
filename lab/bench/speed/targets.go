package speed

import (
	"fmt"
	"slices"
	"strings"
)

// A Target is a promise of speed, and what was measured of it.
type Target struct {
	Name     string `json:"name"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
}

// Targets on two cores, with client and Postgres on the same machine.
const (
	maxAppendRatio  = 1.5 // p50, one writer, to the SQL
	minAppendRate   = 0.6 // a second, 32 writers, to the SQL
	maxContextRatio = 1.3 // p50, a tail of 200, to the SQL
	maxMixedLatency = 25  // ms, p99, at half of the most
	maxServerMemory = 150 // MB
	maxGrowth       = 1.3 // p50, the largest size to the smallest
	maxStorage      = 1.6 // bytes on disk to bytes of bodies
	manyWriters     = 32
	targetTail      = 200
	megabyte        = 1e6
)

// Targets tells of those that the report has figures for whether they are met.
func (r *Report) Targets() (out []Target) {
	add := func(met bool, name, measured string, args ...any) {
		out = append(out, Target{name, fmt.Sprintf(measured, args...), met})
	}
	for _, c := range r.Parts["append"].Comparisons {
		first := c.Results[0]
		ratio := first.Ratios[nameSQL]
		switch {
		case first.Name != nameCoppice || len(first.Ratios) == 0:
		case c.Workers == 1:
			add(ratio.P50.Median <= maxAppendRatio, fmt.Sprintf("%s: p50 at most %.1f times the SQL", c.Name, maxAppendRatio), "%.2f", ratio.P50.Median)
		case c.Workers == manyWriters:
			add(ratio.PerSecond.Median >= minAppendRate, fmt.Sprintf("%s, %d writers: at least %.1f of the SQL's throughput", c.Name, c.Workers, minAppendRate), "%.2f", ratio.PerSecond.Median)
		}
	}
	for _, c := range r.Parts["context"].Comparisons {
		if c.Name == tailName(targetTail) {
			ratio := c.Results[0].Ratios[nameSQL].P50.Median
			add(ratio <= maxContextRatio, fmt.Sprintf("context, %s: p50 at most %.1f times the SQL", c.Name, maxContextRatio), "%.2f", ratio)
		}
	}
	if load := r.Parts["mixed"].Load; load != nil {
		p99 := load.Ways[nameCoppice].P99
		add(p99 <= maxMixedLatency, fmt.Sprintf("four contexts to one append, at half of what is possible: p99 at most %d ms", maxMixedLatency), "%.1f ms", p99)
	}
	most := 0.0
	for _, bytes := range r.MemoryBytes {
		most = max(most, bytes)
	}
	if most > 0 {
		add(most < maxServerMemory*megabyte, fmt.Sprintf("memory of the server, throughout: under %d MB", maxServerMemory), "%.0f MB", most/megabyte)
	}
	for _, a := range r.Growth {
		last := len(a.Sizes) - 1
		ratios := []float64{}
		for _, c := range []Comparison{a.Context, a.Append, a.Transcript} {
			ratios = append(ratios, c.Results[last].Ratios[sizeName(a.Sizes[0])].P50.Median)
		}
		add(slices.Max(ratios) <= maxGrowth, fmt.Sprintf("%s, from %s to %s: context, append and transcript at most %.1f times", a.Name, sizeName(a.Sizes[0]), sizeName(a.Sizes[last]), maxGrowth),
			"%.2f, %.2f, %.2f", ratios[0], ratios[1], ratios[2])
		if len(a.Storage) > 0 {
			highest := 0.0 // of all sizes: the smallest has the search index that grew with its messages
			for _, stored := range a.Storage {
				highest = max(highest, stored.Ratio)
			}
			add(highest < maxStorage, fmt.Sprintf("storage, indexes included: under %.1f times the bodies", maxStorage), "%.3f", highest)
		}
	}
	return out
}

// File is the name of the axis' plot, without its ending.
func (a Axis) File() string {
	return "growth-" + strings.ReplaceAll(strings.Fields(a.Name)[0]+"-"+a.Unit, " ", "-")
}

// tailName is what a context of a tail is called.
func tailName(n int) string { return fmt.Sprintf("tail of %s messages", thousands(n)) }
