package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-chat/coppice/llm"
)

// A watch is what tells operators how a server does: its figures and traces.
type watch struct {
	tracing  tracing
	registry *prometheus.Registry
	models   *modelMetrics
}

func newWatch(d *database, t tracing) (watch, error) {
	w := watch{tracing: t, registry: newRegistry(d)}
	var err error
	w.models, err = newModelMetrics(w.registry)
	return w, err
}

// model gives the same model, whose calls are counted and traced.
func (w watch) model(m llm.Model) llm.Model {
	w.models.begin(m.Name())
	return llm.Instrument(m, llm.Instruments{TracerProvider: w.tracing.tracer(), Observe: w.models.observe})
}
