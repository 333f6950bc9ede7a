package telemetry

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-chat/coppice/replica"
)

// A replicaCollector gives the metrics of a read replica.
type replicaCollector struct{ replica *replica.Replica }

var (
	replicaUp    = prometheus.NewDesc("coppice_replica_up", "1 where reads go to the replica, 0 where all go to the primary.", nil, nil)
	replicaLag   = prometheus.NewDesc("coppice_replica_lag_seconds", "Age of what the replica shows, at most; +Inf while it is away.", nil, nil)
	replicaReads = prometheus.NewDesc("coppice_replica_reads_total", "Reads that a replica may answer, by where they went: to the replica, or to the primary because the replica had not replayed what the client wrote (behind), was away, or could not answer (failed).", []string{"to"}, nil)
)

func (c replicaCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- replicaUp
	ch <- replicaLag
	ch <- replicaReads
}

func (c replicaCollector) Collect(ch chan<- prometheus.Metric) {
	state, up, lag := c.replica.State(), 0.0, math.Inf(1)
	if state.Up {
		up, lag = 1, state.Lag.Seconds()
	}
	ch <- prometheus.MustNewConstMetric(replicaLag, prometheus.GaugeValue, lag)
	ch <- prometheus.MustNewConstMetric(replicaUp, prometheus.GaugeValue, up)
	for to, why := range map[string]replica.Reason{
		"replica": replica.Served, "primary_behind": replica.Behind, "primary_away": replica.Away, "primary_failed": replica.Failed,
	} {
		ch <- prometheus.MustNewConstMetric(replicaReads, prometheus.CounterValue, float64(c.replica.Count(why)), to)
	}
}
