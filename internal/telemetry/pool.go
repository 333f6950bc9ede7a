package telemetry

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// A poolCollector gives the metrics of the database's connection pool. They
// are read when somebody asks, and cost nothing until then.
type poolCollector struct {
	pool *pgxpool.Pool
}

// A poolMetric is one number of the pool's statistics.
type poolMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*pgxpool.Stat) float64
}

var poolMetrics = []poolMetric{
	poolGauge("max_connections", "Connections that the pool may have.",
		func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) }),
	poolGauge("connections", "Connections that the pool has, those being opened included.",
		func(s *pgxpool.Stat) float64 { return float64(s.TotalConns()) }),
	poolGauge("acquired_connections", "Connections in use.",
		func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) }),
	poolGauge("idle_connections", "Connections that wait for use.",
		func(s *pgxpool.Stat) float64 { return float64(s.IdleConns()) }),
	poolCounter("acquires_total", "Times that a connection was taken from the pool.",
		func(s *pgxpool.Stat) float64 { return float64(s.AcquireCount()) }),
	poolCounter("acquire_seconds_total", "Time spent on taking connections from the pool.",
		func(s *pgxpool.Stat) float64 { return s.AcquireDuration().Seconds() }),
	poolCounter("waits_total", "Times that a connection had to be waited for, because none was idle.",
		func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) }),
	poolCounter("wait_seconds_total", "Time spent on those waits.",
		func(s *pgxpool.Stat) float64 { return s.EmptyAcquireWaitTime().Seconds() }),
	poolCounter("canceled_acquires_total", "Waits for a connection that were given up.",
		func(s *pgxpool.Stat) float64 { return float64(s.CanceledAcquireCount()) }),
	poolCounter("opened_connections_total", "Connections opened.",
		func(s *pgxpool.Stat) float64 { return float64(s.NewConnsCount()) }),
}

func poolGauge(name, help string, value func(*pgxpool.Stat) float64) poolMetric {
	return poolMetric{prometheus.NewDesc("coppice_pool_"+name, help, nil, nil), prometheus.GaugeValue, value}
}

func poolCounter(name, help string, value func(*pgxpool.Stat) float64) poolMetric {
	return poolMetric{prometheus.NewDesc("coppice_pool_"+name, help, nil, nil), prometheus.CounterValue, value}
}

func (c poolCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range poolMetrics {
		ch <- m.desc
	}
}

func (c poolCollector) Collect(ch chan<- prometheus.Metric) {
	stat := c.pool.Stat()
	for _, m := range poolMetrics {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(stat))
	}
}
