package llm

import (
	"fmt"
	"math"
	"strings"
)

// A Price says what a million tokens of a model cost, in any currency.
type Price struct {
	Prompt, Completion float64
}

// Prices are the prices of models, by the beginnings of their names.
type Prices map[string]Price

// Check returns an error if a price has no model's name, or an amount that is
// negative, infinite or not a number.
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

// Of returns the price of a model. Of several beginnings of the model's name,
// the longest counts.
func (p Prices) Of(model string) (found Price, known bool) {
	longest := -1
	for name, price := range p {
		if strings.HasPrefix(model, name) && len(name) > longest {
			found, known, longest = price, true, len(name)
		}
	}
	return found, known
}

// Cost returns what this number of tokens of a model costs, and whether its price is
// known.
func (p Prices) Cost(model string, promptTokens, completionTokens int) (cost float64, known bool) {
	price, known := p.Of(model)
	return (price.Prompt*float64(promptTokens) + price.Completion*float64(completionTokens)) / 1e6, known
}
