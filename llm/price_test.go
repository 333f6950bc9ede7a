package llm

import (
	"math"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

func TestPrices(t *testing.T) {
	t.Parallel()
	p := Prices{"gpt-4": {10, 30}, "gpt-4o-mini": {0.15, 0.6}, "own": {}}
	for model, want := range map[string]float64{"gpt-4": 70, "gpt-4.1": 70, "gpt-4o-mini-2024": 1.35, "own": 0} {
		cost, known := p.Cost(model, 1_000_000, 2_000_000)
		check.That(t, known && math.Abs(cost-want) <= 1e-9, "%s: %v, %v", model, cost, known)
	}
	_, known := p.Of("claude")
	check.That(t, !known, "a model without a price has one")
	check.NoError(t, p.Check())
	for _, wrong := range []Prices{{"a": {-1, 0}}, {"a": {0, math.NaN()}}, {"": {1, 1}}, {"a": {math.Inf(1), 0}}} {
		check.That(t, wrong.Check() != nil, "%v is taken", wrong)
	}
}
