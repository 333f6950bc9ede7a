package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-chat/coppice/summarize"
)

const (
	// jobsFresh is how old the counts of jobs may be: whoever reads the metrics
	// all the time shall not keep the database busy.
	jobsFresh = 5 * time.Second
	// jobsPatience is how long the database may take to count. Without its
	// answer the metrics come without jobs.
	jobsPatience = 2 * time.Second
)

// A jobCollector gives the metrics of the background jobs: those that wait or
// run, of all servers on the database, as the database has them.
type jobCollector struct {
	count func(context.Context) (summarize.Jobs, error)
	log   *slog.Logger

	mu   sync.Mutex
	at   time.Time // of the last count
	last *summarize.Jobs
}

var (
	jobsNow = prometheus.NewDesc("coppice_jobs",
		"Background jobs that aren't done, of all servers on the database.", []string{"state"}, nil)
	jobsAge = prometheus.NewDesc("coppice_jobs_oldest_age_seconds",
		"Time that the first of them that is due has waited, or the longest one has run; of all servers on the database.", []string{"state"}, nil)
)

func (c *jobCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- jobsNow
	ch <- jobsAge
}

func (c *jobCollector) Collect(ch chan<- prometheus.Metric) {
	j := c.jobs()
	if j == nil {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, state string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, state)
	}
	gauge(jobsNow, float64(j.Queued), "queued")
	gauge(jobsNow, float64(j.Retrying), "retrying")
	gauge(jobsNow, float64(j.Running), "running")
	gauge(jobsAge, j.OldestQueued.Seconds(), "queued")
	gauge(jobsAge, j.OldestRunning.Seconds(), "running")
}

// jobs counts, or gives a count that is fresh enough; nil where the database
// doesn't answer.
func (c *jobCollector) jobs() *summarize.Jobs {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && time.Since(c.at) < jobsFresh {
		return c.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), jobsPatience)
	defer cancel()
	j, err := c.count(ctx)
	c.at, c.last = time.Now(), &j
	if err != nil {
		c.last = nil
		c.log.Warn("background jobs could not be counted for the metrics", "error", err)
	}
	return c.last
}

// JobAttempts adds the counter of what attempts at jobs came to.
func (t *Telemetry) JobAttempts() (observe func(summarize.JobOutcome), err error) {
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "coppice_job_attempts_total", Help: "Attempts at background jobs by this server, by what came of them.",
	}, []string{"outcome"})
	for _, outcome := range summarize.JobOutcomes() {
		attempts.WithLabelValues(string(outcome))
	}
	return func(o summarize.JobOutcome) { attempts.WithLabelValues(string(o)).Inc() }, t.register(attempts)
}
