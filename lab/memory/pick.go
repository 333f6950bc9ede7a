package memory

import (
	"math"
	"slices"

	"github.com/coppice-chat/coppice/tokens"
)

// pick takes again and again a sentence with the most uncovered rare words by the
// token: among those within 3 % of the best, the first.
func pick(sentences []string, room int, counter tokens.Counter) string {
	const step, last = 0.97, 1e-3 // of the highest gain
	df := map[string]float64{}
	words, costs := make([][]string, len(sentences)), make([]int, len(sentences))
	for i, s := range sentences {
		words[i] = plainWords(s)
		slices.Sort(words[i])
		words[i] = slices.Compact(words[i])
		for _, w := range words[i] {
			df[w]++
		}
		costs[i] = counter.Count(s) + 1
	}
	covered := map[string]bool{}
	gain := func(i int) (sum float64) {
		for _, w := range words[i] {
			if !covered[w] {
				sum += math.Log(float64(len(sentences)) / df[w])
			}
		}
		return sum / float64(costs[i])
	}
	gains := make([]float64, len(sentences)) // which only fall
	for i := range gains {
		gains[i] = gain(i)
	}
	var order []int
	top := slices.Max(append(gains, 0))
	for level, left := top*step, room; level > top*last; level *= step {
		for i := range gains {
			if gains[i] < level {
				continue
			}
			if gains[i] = gain(i); gains[i] < level {
				continue
			}
			if gains[i] = 0; costs[i] <= left {
				left -= costs[i]
				order = append(order, i)
				for _, w := range words[i] {
					covered[w] = true
				}
			}
		}
	}
	return firstOf(sentences, order, room, counter)
}
