package telemetry

import (
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-chat/coppice/replica"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/search"
)

// gauge and counter make metrics that are read when somebody asks, and cost nothing until
// then. Labels are a name and a value, or none.
func gauge[N number](name, help string, value func() N) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
}

func counter[N number](name, help string, labels prometheus.Labels, value func() N) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return float64(value()) })
}

type number interface {
	int | int32 | int64 | uint64 | float64
}

// poolMetrics are those of the database's connection pool.
func poolMetrics(p *pgxpool.Pool) []prometheus.Collector {
	seconds := func(of func(*pgxpool.Stat) time.Duration) func() float64 {
		return func() float64 { return of(p.Stat()).Seconds() }
	}
	return []prometheus.Collector{
		gauge("coppice_pool_max_connections", "Connections that the pool may have.", func() int32 { return p.Stat().MaxConns() }),
		gauge("coppice_pool_connections", "Connections that the pool has, those being opened included.", func() int32 { return p.Stat().TotalConns() }),
		gauge("coppice_pool_acquired_connections", "Connections in use.", func() int32 { return p.Stat().AcquiredConns() }),
		gauge("coppice_pool_idle_connections", "Connections that wait for use.", func() int32 { return p.Stat().IdleConns() }),
		counter("coppice_pool_acquires_total", "Times that a connection was taken from the pool.", nil, func() int64 { return p.Stat().AcquireCount() }),
		counter("coppice_pool_acquire_seconds_total", "Time spent on taking connections from the pool.", nil, seconds((*pgxpool.Stat).AcquireDuration)),
		counter("coppice_pool_waits_total", "Times that a connection had to be waited for, because none was idle.", nil, func() int64 { return p.Stat().EmptyAcquireCount() }),
		counter("coppice_pool_wait_seconds_total", "Time spent on those waits.", nil, seconds((*pgxpool.Stat).EmptyAcquireWaitTime)),
		counter("coppice_pool_canceled_acquires_total", "Waits for a connection that were given up.", nil, func() int64 { return p.Stat().CanceledAcquireCount() }),
		counter("coppice_pool_opened_connections_total", "Connections opened.", nil, func() int64 { return p.Stat().NewConnsCount() }),
	}
}

// Replies adds the metrics of replies.
func (t *Telemetry) Replies(s *reply.Service) error {
	const name, help = "coppice_replies_total", "Replies that ended, by how they did."
	status := func(of reply.Status) prometheus.Labels { return prometheus.Labels{"status": string(of)} }
	return t.register(
		gauge("coppice_replies_running", "Replies under way.", func() int { return s.Stats().Running }),
		counter(name, help, status(reply.StatusCompleted), func() uint64 { return s.Stats().Completed }),
		counter(name, help, status(reply.StatusStopped), func() uint64 { return s.Stats().Stopped }),
		counter(name, help, status(reply.StatusFailed), func() uint64 { return s.Stats().Failed }),
	)
}

// Recall adds the metrics of recall.
func (t *Telemetry) Recall(s *search.Service) error {
	return t.register(
		gauge("coppice_recall_indexes", "Conversations whose words are in memory.", func() int { return s.Stats().Conversations }),
		gauge("coppice_recall_index_bytes", "Memory that their words take, about.", func() int64 { return s.Stats().Bytes }),
	)
}

// Replica adds the metrics of a read replica.
func (t *Telemetry) Replica(r *replica.Replica) error {
	all := []prometheus.Collector{
		gauge("coppice_replica_up", "1 where reads go to the replica, 0 where all go to the primary.", func() int {
			if r.State().Up {
				return 1
			}
			return 0
		}),
		gauge("coppice_replica_lag_seconds", "Age of what the replica shows, at most; +Inf while it is away.", func() float64 {
			if state := r.State(); state.Up {
				return state.Lag.Seconds()
			}
			return math.Inf(1)
		}),
	}
	for to, why := range map[string]replica.Reason{
		"replica": replica.Served, "primary_behind": replica.Behind, "primary_away": replica.Away, "primary_failed": replica.Failed,
	} {
		all = append(all, counter("coppice_replica_reads_total", "Reads that a replica may answer, by where they went: to the replica, or to the primary because the replica had not replayed what the client wrote (behind), was away, or could not answer (failed).",
			prometheus.Labels{"to": to}, func() int64 { return r.Count(why) }))
	}
	return t.register(all...)
}
