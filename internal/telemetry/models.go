package telemetry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-chat/coppice/llm"
)

// modelMetrics are the metrics of model calls. Their label values are the
// models of the command line.
type modelMetrics struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	spent    *prometheus.CounterVec
	cost     func(model string, promptTokens, completionTokens int) (float64, bool)
	account  func(ctx context.Context, cost float64)
}

func newModelMetrics(cost func(model string, promptTokens, completionTokens int) (float64, bool), account func(ctx context.Context, cost float64)) *modelMetrics {
	return &modelMetrics{
		cost: cost, account: account,
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coppice_model_tokens_total", Help: "Tokens that models were sent (prompt) and gave (completion), as their providers counted them.",
		}, []string{"model", "direction"}),
		spent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coppice_model_cost_total", Help: "What those tokens cost at the prices of --model-price; only of models that have one.",
		}, []string{"model"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coppice_model_calls_total", Help: "Calls of models that ended, by what came of them.",
		}, []string{"model", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "coppice_model_call_duration_seconds", Help: "Time from a model's call to its answer's end.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300},
		}, []string{"model"}),
	}
}

// begin has a model's metrics stand at 0 from the start.
func (m *modelMetrics) begin(model string) {
	for _, outcome := range llm.Outcomes() {
		m.calls.WithLabelValues(model, outcome)
	}
	m.duration.WithLabelValues(model)
	m.tokens.WithLabelValues(model, "prompt")
	m.tokens.WithLabelValues(model, "completion")
	if _, known := m.cost(model, 0, 0); known {
		m.spent.WithLabelValues(model)
	}
}

func (m *modelMetrics) observe(ctx context.Context, c llm.Call) {
	m.calls.WithLabelValues(c.Model, c.Outcome).Inc()
	m.duration.WithLabelValues(c.Model).Observe(c.Took.Seconds())
	m.tokens.WithLabelValues(c.Model, "prompt").Add(float64(c.PromptTokens))
	m.tokens.WithLabelValues(c.Model, "completion").Add(float64(c.CompletionTokens))
	if cost, known := m.cost(c.Model, c.PromptTokens, c.CompletionTokens); known {
		m.spent.WithLabelValues(c.Model).Add(cost)
		m.account(ctx, cost)
	}
}
