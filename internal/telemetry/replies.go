package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-chat/coppice/reply"
)

// A replyCollector gives the metrics of replies.
type replyCollector struct{ replies *reply.Service }

var (
	repliesRunning = prometheus.NewDesc("coppice_replies_running", "Replies under way.", nil, nil)
	repliesTotal   = prometheus.NewDesc("coppice_replies_total", "Replies that ended, by how they did.", []string{"status"}, nil)
)

func (c replyCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- repliesRunning
	ch <- repliesTotal
}

func (c replyCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.replies.Stats()
	ch <- prometheus.MustNewConstMetric(repliesRunning, prometheus.GaugeValue, float64(s.Running))
	for status, n := range map[reply.Status]uint64{
		reply.StatusCompleted: s.Completed, reply.StatusStopped: s.Stopped, reply.StatusFailed: s.Failed,
	} {
		ch <- prometheus.MustNewConstMetric(repliesTotal, prometheus.CounterValue, float64(n), string(status))
	}
}
