// Package telemetry has a Coppice's metrics, which Prometheus reads, and its
// traces, which it sends by OTLP where the environment names a collector.
//
// Metrics and spans hold ids, names from the program and numbers. They hold no
// text of a message, because the people who may read them need not be the people
// who may read the conversations.
package telemetry

import (
	"context"

	"runtime"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-chat/coppice/llm"
)

// A Telemetry has the metrics of one Coppice, and gives its parts their counters
// and tracers.
type Telemetry struct {
	Registry *prometheus.Registry
	Tracing  trace.TracerProvider // nil where nothing is traced, which costs nothing

	models *modelMetrics
}

// New makes a Telemetry with the metrics of a pool. Without a registry it makes
// one, with the metrics of the process as well. cost says what tokens of a model
// cost, and whether its price is known, and account takes the cost of each call.
func New(registry *prometheus.Registry, tracing trace.TracerProvider, pool *pgxpool.Pool, version string, cost func(model string, promptTokens, completionTokens int) (float64, bool), account func(ctx context.Context, cost float64)) (*Telemetry, error) {
	own := append(poolMetrics(pool), newBuildInfo(version))
	if registry == nil {
		registry = prometheus.NewRegistry()
		own = append(own, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	t := &Telemetry{Registry: registry, Tracing: tracing, models: newModelMetrics(cost, account)}
	return t, t.register(append(own, t.models.calls, t.models.duration, t.models.tokens, t.models.spent)...)
}

func (t *Telemetry) register(all ...prometheus.Collector) error {
	for _, c := range all {
		if err := t.Registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// Model returns the same model, with its calls counted and traced.
func (t *Telemetry) Model(m llm.Model) llm.Model {
	t.models.begin(m.Name())
	return llm.Instrument(m, llm.Instruments{TracerProvider: t.Tracing, Observe: t.models.observe})
}

// Embedder returns the same embedder, with its calls counted and traced.
func (t *Telemetry) Embedder(e llm.Embedder) llm.Embedder {
	t.models.begin(e.Name())
	return llm.InstrumentEmbedder(e, llm.Instruments{TracerProvider: t.Tracing, Observe: t.models.observe})
}

// newBuildInfo is always 1, and tells by its labels which program runs.
func newBuildInfo(version string) prometheus.Gauge {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "coppice_build_info", Help: "Always 1; the labels say which program runs.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	})
	info.Set(1)
	return info
}
