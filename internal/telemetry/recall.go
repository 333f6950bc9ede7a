package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-chat/coppice/search"
)

// A recallCollector gives the metrics of recall.
type recallCollector struct{ recall *search.Service }

var (
	recallConversations = prometheus.NewDesc("coppice_recall_indexes", "Conversations whose words are in memory.", nil, nil)
	recallBytes         = prometheus.NewDesc("coppice_recall_index_bytes", "Memory that their words take, about.", nil, nil)
)

func (c recallCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- recallConversations
	ch <- recallBytes
}

func (c recallCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.recall.Stats()
	ch <- prometheus.MustNewConstMetric(recallConversations, prometheus.GaugeValue, float64(s.Conversations))
	ch <- prometheus.MustNewConstMetric(recallBytes, prometheus.GaugeValue, float64(s.Bytes))
}
