package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-chat/coppice/tree"
)

// Compactions has the metrics of the compactions that a process ran, in the
// background and on demand.
type Compactions struct {
	ran      *prometheus.CounterVec
	saved    prometheus.Counter
	spent    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewCompactions adds the metrics to a registry. It fails where the registry has
// them already.
func NewCompactions(registry *prometheus.Registry) (*Compactions, error) {
	m := &Compactions{
		ran: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coppice_compactions_total", Help: "Compactions that ran, by what came of them.",
		}, []string{"outcome"}),
		saved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "coppice_compaction_saved_tokens_total", Help: "Tokens by which compactions made contexts smaller.",
		}),
		spent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "coppice_compaction_model_tokens_total", Help: "Tokens that summarizers were sent (prompt) and gave (completion), failed attempts included.",
		}, []string{"direction"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "coppice_compaction_duration_seconds", Help: "Time from reading a branch to saving its summary.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 180},
		}, []string{"outcome"}),
	}
	for _, c := range []prometheus.Collector{m.ran, m.saved, m.spent, m.duration} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, outcome := range []tree.Outcome{
		tree.OutcomeSaved, tree.OutcomeNothingToDo, tree.OutcomeNoGain, tree.OutcomeSuperseded, tree.OutcomeStale, tree.OutcomeFailed,
	} {
		m.ran.WithLabelValues(string(outcome)) // so that each stands at 0 from the start
		m.duration.WithLabelValues(string(outcome))
	}
	for _, direction := range []string{"prompt", "completion"} {
		m.spent.WithLabelValues(direction)
	}
	return m, nil
}

// Observe counts a compaction that ran. It is the Observe of a
// summarize.Config.
func (m *Compactions) Observe(k tree.Compaction) {
	m.ran.WithLabelValues(string(k.Outcome)).Inc()
	m.duration.WithLabelValues(string(k.Outcome)).Observe(k.Duration.Seconds())
	m.spent.WithLabelValues("prompt").Add(float64(k.PromptTokens))
	m.spent.WithLabelValues("completion").Add(float64(k.CompletionTokens))
	if gain := k.TokensBefore - k.TokensAfter; k.Outcome == tree.OutcomeSaved && gain > 0 {
		m.saved.Add(float64(gain))
	}
}
