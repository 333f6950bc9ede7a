package torture

import (
	"context"
	"fmt"
	"io"
	"time"
)

// SoakDefaults are a run of an hour in which nothing goes wrong: a moderate
// load of all operations, and samples of what servers hold.
func SoakDefaults() Config {
	c := Defaults()
	c.Soak, c.Duration, c.CheckEvery = true, time.Hour, 10*time.Minute
	c.Pause = 400 * time.Millisecond
	c.Kills, c.Cuts, c.Fills, c.ModelFaults, c.Drops = 0, 0, 0, 0, 0
	return c
}

// A Gauge is one thing that a server holds, as samples showed it: the mean over
// each quarter of the time, and the most. The time until caches are warm is left
// out. It is flat where the last quarter is like the first.
type Gauge struct {
	Server   string     `json:"server"`
	Name     string     `json:"name"`
	Quarters [4]float64 `json:"quarters"`
	Max      float64    `json:"max"`
	Flat     bool       `json:"flat"`
}

// gauges are what is sampled, of /metrics, and what an even load may add to
// the mean from the first to the last quarter: a tenth, and so much.
var gauges = []struct {
	metric, name string
	slack        float64
	unit         float64
}{
	{"process_resident_memory_bytes", "memory (MiB, RSS)", 8 << 20, 1 << 20},
	{"go_memstats_heap_inuse_bytes", "heap in use (MiB)", 4 << 20, 1 << 20},
	{"go_goroutines", "goroutines", 5, 1},
	{"process_open_fds", "open files", 4, 1},
	{"coppice_pool_connections", "database connections", 2, 1},
}

// Of a soak's time, a twelfth is for warming up.
const warmUp = 12

const sampleEvery = 5 * time.Second

// A sample is what the servers' metrics said at a time.
type sample struct {
	at     time.Duration
	values map[string]float64
}

// sampler takes samples of each server until ctx ends.
func (r *run) sampler(ctx context.Context) {
	begin := time.Now()
	samples := make([][]sample, len(r.programs))
	for ctx.Err() == nil {
		for i, p := range r.programs {
			if values, err := r.metrics(ctx, p); err == nil {
				samples[i] = append(samples[i], sample{time.Since(begin), values})
			}
		}
		r.sleep(ctx, sampleEvery)
	}
	for i, p := range r.programs {
		found := assess(p.name, samples[i])
		r.report.count(func(report *Report) { report.Soak = append(report.Soak, found...) })
	}
}

// assess compares the first quarter of the samples with the last.
func assess(server string, all []sample) (found []Gauge) {
	if len(all) == 0 {
		return nil
	}
	warm := all[len(all)-1].at / warmUp
	for len(all) > 1 && all[0].at < warm {
		all = all[1:]
	}
	for _, g := range gauges {
		gauge := Gauge{Server: server, Name: g.name}
		for i := range gauge.Quarters {
			from := len(all) * i / 4
			gauge.Quarters[i] = mean(all[from:max(from+1, len(all)*(i+1)/4)], g.metric) / g.unit
		}
		for _, s := range all {
			gauge.Max = max(gauge.Max, s.values[g.metric]/g.unit)
		}
		gauge.Flat = gauge.Quarters[3] <= gauge.Quarters[0]*1.1+g.slack/g.unit
		found = append(found, gauge)
	}
	return found
}

func mean(samples []sample, metric string) (sum float64) {
	for _, s := range samples {
		sum += s.values[metric]
	}
	return sum / float64(len(samples))
}

func printSoak(w io.Writer, all []Gauge) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-26s %9s %9s %9s %9s %9s\n", "server, and what it held", "1st q.", "2nd", "3rd", "4th", "max")
	for _, g := range all {
		verdict := "flat"
		if !g.Flat {
			verdict = "GROWS"
		}
		q := g.Quarters
		fmt.Fprintf(w, "  %s  %-21s %9.1f %9.1f %9.1f %9.1f %9.1f  %s\n", g.Server, g.Name, q[0], q[1], q[2], q[3], g.Max, verdict)
	}
}
