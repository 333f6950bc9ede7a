package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-chat/coppice/db"
)

// Counts are the unfinished jobs of a database, of all servers that share it.
type Counts struct {
	Queued    int64 // wait for a worker
	Retrying  int64 // failed, and wait for their next attempt
	Running   int64
	Embedding int64 // conversations whose messages are or will be embedded

	OldestQueued  time.Duration // how long the first job that is due has been waiting; 0 where none is
	OldestRunning time.Duration // how long the longest one has been running; 0 where none is
}

// Count counts the unfinished jobs. It costs one query, which reads no other
// jobs.
func (w *Worker) Count(ctx context.Context) (Counts, error) {
	row, err := w.queries.CountJobs(ctx)
	if err != nil {
		db.Wrap(&err, "jobs.Worker.Count")
		return Counts{}, err
	}
	duration := func(seconds float64) time.Duration { return time.Duration(max(0, seconds) * float64(time.Second)) }
	return Counts{row.Queued, row.Retrying, row.Running, row.Embedding, duration(row.OldestQueued), duration(row.OldestRunning)}, nil
}

const (
	// countsFresh is how old the counts may be: whoever reads the metrics all the
	// time shall not keep the database busy.
	countsFresh = 5 * time.Second
	// countTimeout is how long the database may take to count. Without its
	// answer the metrics come without jobs.
	countTimeout = 2 * time.Second
)

// metrics gives the metrics of the jobs: those that wait or run, of all servers
// on the database, as the database has them; and what this server's attempts came
// to.
type metrics struct {
	count    func(context.Context) (Counts, error)
	log      *slog.Logger
	attempts *prometheus.CounterVec

	mu   sync.Mutex
	at   time.Time // of the last count
	last *Counts
}

var (
	jobsNow = prometheus.NewDesc("coppice_jobs",
		"Background jobs that aren't done, of all servers on the database.", []string{"state"}, nil)
	jobsAge = prometheus.NewDesc("coppice_jobs_oldest_age_seconds",
		"Time that the first of them that is due has waited, or the longest one has run; of all servers on the database.", []string{"state"}, nil)
)

func newMetrics(count func(context.Context) (Counts, error), log *slog.Logger) *metrics {
	m := &metrics{count: count, log: log, attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "coppice_job_attempts_total", Help: "Attempts at background jobs by this server, by what came of them.",
	}, []string{"outcome"})}
	for _, outcome := range []string{completed, continued, retried, discarded} {
		m.attempts.WithLabelValues(outcome)
	}
	return m
}

func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- jobsNow
	ch <- jobsAge
	m.attempts.Describe(ch)
}

func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.attempts.Collect(ch)
	j := m.counts()
	if j == nil {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, state string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, state)
	}
	gauge(jobsNow, float64(j.Queued), "queued")
	gauge(jobsNow, float64(j.Retrying), "retrying")
	gauge(jobsNow, float64(j.Running), "running")
	gauge(jobsNow, float64(j.Embedding), "embedding")
	gauge(jobsAge, j.OldestQueued.Seconds(), "queued")
	gauge(jobsAge, j.OldestRunning.Seconds(), "running")
}

// counts counts, or gives a count that is fresh enough; nil where the database
// doesn't answer.
func (m *metrics) counts() *Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.at.IsZero() && time.Since(m.at) < countsFresh {
		return m.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	j, err := m.count(ctx)
	m.at, m.last = time.Now(), &j
	if err != nil {
		m.last = nil
		m.log.Warn("background jobs could not be counted for the metrics", "error", err)
	}
	return m.last
}
