package server

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the server's figures.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	appends  *prometheus.CounterVec
	appended prometheus.Counter
	streams  prometheus.Gauge
}

// Outcomes of an append, as coppice_appends_total tells them apart.
const (
	appendCreated  = "created"  // stored now
	appendReplayed = "replayed" // stored before, by the same id
	appendRefused  = "refused"  // the client's mistake
	appendFailed   = "failed"   // the server's
)

func newMetrics(registry *prometheus.Registry) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coppice_http_requests_total", Help: "Requests answered.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "coppice_http_request_duration_seconds", Help: "Time from a request's head to the end of its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method", "route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "coppice_http_requests_in_flight", Help: "Requests under way.",
		}),
		appends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coppice_appends_total", Help: "Appends, of one message or of a chain, by what came of them.",
		}, []string{"outcome"}),
		appended: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "coppice_appended_messages_total", Help: "Messages stored by appends.",
		}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "coppice_reply_streams_open", Help: "Clients that are reading a reply's events.",
		}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.inFlight, m.appends, m.appended, m.streams} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, outcome := range []string{appendCreated, appendReplayed, appendRefused, appendFailed} {
		m.appends.WithLabelValues(outcome) // so that each stands at 0 from the start
	}
	return m, nil
}

func (m *metrics) observe(method, route, status string, took time.Duration) {
	method = knownMethod(method)
	m.requests.WithLabelValues(method, route, status).Inc()
	m.duration.WithLabelValues(method, route).Observe(took.Seconds())
}

// knownMethod is a request's method, or "other": a client may make up methods,
// and each would be a series.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodDelete, http.MethodPut, http.MethodOptions:
		return method
	}
	return "other"
}

// countAppend counts what came of an append of n messages.
func (m *metrics) countAppend(n int, created bool, err error) {
	switch {
	case err == nil && created:
		m.appends.WithLabelValues(appendCreated).Inc()
		m.appended.Add(float64(n))
	case err == nil:
		m.appends.WithLabelValues(appendReplayed).Inc()
	case toProblem(err).Status < http.StatusInternalServerError:
		m.appends.WithLabelValues(appendRefused).Inc()
	default:
		m.appends.WithLabelValues(appendFailed).Inc()
	}
}
