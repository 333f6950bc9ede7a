package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Requests has the metrics of a server's requests.
type Requests struct {
	InFlight prometheus.Gauge
	Streams  prometheus.Gauge // of replies that clients read
	Watches  prometheus.Gauge // of what changes

	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	appends  *prometheus.CounterVec
	appended prometheus.Counter
}

// Append is the outcome of an append.
type Append string

// What comes of an append, as coppice_appends_total tells it apart.
const (
	AppendCreated  Append = "created"  // stored now
	AppendReplayed Append = "replayed" // stored before, by the same id
	AppendRefused  Append = "refused"  // the client's mistake
	AppendFailed   Append = "failed"   // the server's
)

// NewRequests adds the metrics to a registry. It fails where the registry has
// them already.
func NewRequests(registry *prometheus.Registry) (*Requests, error) {
	m := &Requests{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coppice_http_requests_total", Help: "Requests answered.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "coppice_http_request_duration_seconds", Help: "Time from a request's head to the end of its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method", "route"}),
		InFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "coppice_http_requests_in_flight", Help: "Requests under way.",
		}),
		appends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coppice_appends_total", Help: "Appends, of one message or of a chain, by what came of them.",
		}, []string{"outcome"}),
		appended: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "coppice_appended_messages_total", Help: "Messages stored by appends.",
		}),
		Streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "coppice_reply_streams_open", Help: "Clients that are reading a reply's events.",
		}),
		Watches: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "coppice_event_streams_open", Help: "Clients that are reading what changes.",
		}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.InFlight, m.appends, m.appended, m.Streams, m.Watches} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, outcome := range []Append{AppendCreated, AppendReplayed, AppendRefused, AppendFailed} {
		m.appends.WithLabelValues(string(outcome)) // so that each stands at 0 from the start
	}
	return m, nil
}

// Observe counts a request that was answered.
func (m *Requests) Observe(method, route, status string, took time.Duration) {
	method = KnownMethod(method)
	m.requests.WithLabelValues(method, route, status).Inc()
	m.duration.WithLabelValues(method, route).Observe(took.Seconds())
}

// Append counts an append of n messages.
func (m *Requests) Append(n int, outcome Append) {
	m.appends.WithLabelValues(string(outcome)).Inc()
	if outcome == AppendCreated {
		m.appended.Add(float64(n))
	}
}

// KnownMethod returns a request's method, or "other". A client may invent
// methods, and each would become a series.
func KnownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodDelete, http.MethodPut, http.MethodOptions:
		return method
	}
	return "other"
}
