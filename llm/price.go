package llm

import (
	"fmt"
	"math"
	"strings"
)

// A Price is what a million tokens of a model cost, in any currency.
type Price struct {
	Prompt, Completion float64
}

// Prices are those of models, by the beginnings of their names.
type Prices map[string]Price

// Check refuses prices that can't be.
func (p Prices) Check() error {
	for name, price := range p {
		for _, n := range []float64{price.Prompt, price.Completion} {
			if name == "" || !(n >= 0) || math.IsInf(n, 0) {
				return fmt.Errorf("the price of the model %q is no amount: give it a name and two numbers, 0 or more", name)
			}
		}
	}
	return nil
}

// Of gives the price of a model: that of the longest beginning of its name.
func (p Prices) Of(model string) (found Price, known bool) {
	longest := -1
	for name, price := range p {
		if strings.HasPrefix(model, name) && len(name) > longest {
			found, known, longest = price, true, len(name)
		}
	}
	return found, known
}

// Cost is what so many tokens cost.
func (p Price) Cost(promptTokens, completionTokens int) float64 {
	return (p.Prompt*float64(promptTokens) + p.Completion*float64(completionTokens)) / 1e6
}
