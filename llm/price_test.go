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
		if cost, known := p.Cost(model, 1_000_000, 2_000_000); !known || math.Abs(cost-want) > 1e-9 {
			t.Errorf("%s: %v, %v", model, cost, known)
		}
	}
	if _, known := p.Of("claude"); known {
		t.Error("a model without a price has one")
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	for _, wrong := range []Prices{{"a": {-1, 0}}, {"a": {0, math.NaN()}}, {"": {1, 1}}, {"a": {math.Inf(1), 0}}} {
		check.That(t, wrong.Check() != nil, "%v is taken", wrong)
	}
}
