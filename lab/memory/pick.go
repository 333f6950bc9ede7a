package memory

import (
	priority "container/heap"
	"math"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/tokens"
)

// sentences gives all sentences of a chat, with the speaker's name.
func (c Chat) sentences() (all []string) {
	for _, m := range c.Messages {
		for _, s := range sentencesOf(m.Text) {
			s = strings.Join(strings.Fields(s), " ")
			if m.Name != "" {
				s = m.Name + ": " + s
			}
			all = append(all, s)
		}
	}
	return all
}

// firstOf takes sentences in an order until the room is used, and gives them in
// the conversation's order.
func firstOf(sentences []string, order []int, room int, counter tokens.Counter) string {
	var chosen []int
	for _, i := range order {
		if room -= counter.Count(sentences[i]) + 1; room < 0 {
			break
		}
		chosen = append(chosen, i)
	}
	slices.Sort(chosen)
	lines := make([]string, len(chosen))
	for n, i := range chosen {
		lines[n] = sentences[i]
	}
	return strings.Join(lines, "\n")
}

// pick takes again and again the sentence with the most uncovered rare words by
// the token.
func pick(sentences []string, room int, counter tokens.Counter) string {
	df := map[string]float64{}
	queue := make(queue, 0, len(sentences))
	for i, s := range sentences {
		words := plainWords(s)
		slices.Sort(words)
		words = slices.Compact(words)
		for _, w := range words {
			df[w]++
		}
		queue = append(queue, candidate{i, words, float64(counter.Count(s) + 1), 0})
	}
	covered := map[string]bool{}
	gain := func(c candidate) (sum float64) {
		for _, w := range c.words {
			if !covered[w] {
				sum += math.Log(float64(len(sentences)) / df[w])
			}
		}
		return sum / c.cost
	}
	for i := range queue {
		queue[i].gain = gain(queue[i])
	}
	priority.Init(&queue)
	var order []int
	for left := float64(room); len(queue) > 0; {
		best := queue[0]
		if now := gain(best); now < best.gain { // gains only fall
			queue[0].gain = now
			priority.Fix(&queue, 0)
			continue
		}
		priority.Pop(&queue)
		if best.gain == 0 {
			break
		}
		if best.cost > left {
			continue
		}
		left -= best.cost
		for _, w := range best.words {
			covered[w] = true
		}
		order = append(order, best.index)
	}
	return firstOf(sentences, order, room, counter)
}

// A candidate is a sentence that the picker may take.
type candidate struct {
	index int
	words []string
	cost  float64
	gain  float64
}

// queue has the best candidate first.
type queue []candidate

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].gain > q[j].gain }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(candidate)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
