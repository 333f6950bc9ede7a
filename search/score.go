package search

import (
	"math"
	"slices"
)

// A scorer adds up the scores of a question's words. Its slices are by number.
type scorer struct {
	x      *index
	scope  *scope
	of     *statistics
	alone  bool // nobody answers
	counts []float32
	passed []float32 // the best score for the word at hand, of an entry's own and what is passed on to it
	scores []float64

	number   int32        // of the word at hand, from 1
	last     alternatives // the word at hand, and before it is found the one before
	pair     string       // of the word at hand with the one before
	latest   []int32      // the number of the last word that an entry has
	having   []int32      // entries that have the word at hand
	together []int32      // those that have the pair
	reached  []int32      // entries with something in passed
}

func (x *index) newScorer(s *scope, of *statistics) *scorer {
	n := len(x.entries)
	return &scorer{
		x: x, scope: s, of: of, alone: of.alone(),
		counts: make([]float32, n), passed: make([]float32, n), scores: make([]float64, n), latest: make([]int32, n),
	}
}

func (x *index) sameSpeaker(n, other int32) bool {
	e, o := &x.entries[n], &x.entries[other]
	return e.speaker == o.speaker && e.marks&isSaid == o.marks&isSaid
}

// find finds the entries that have a word, how often, and those in which it stands
// right behind the word that was found before, function words left out.
func (c *scorer) find(word alternatives) {
	c.number++
	for _, n := range c.having {
		c.counts[n] = 0
	}
	c.having, c.together = c.having[:0], c.together[:0]
	for _, t := range word.terms {
		for n, count := range c.x.postings[t].all() {
			if !c.scope.inside[n] {
				continue
			}
			if c.counts[n] == 0 {
				c.having = append(c.having, n)
			}
			c.counts[n] += float32(count)
		}
	}
	for _, n := range c.having {
		if c.number > 1 && c.latest[n] == c.number-1 && follows(c.x.orderOf(n), c.last.terms, word.terms) {
			c.together = append(c.together, n)
		}
		c.latest[n] = c.number
	}
	c.pair, c.last = c.last.word+" "+word.word, word
}

// add adds the scores of a word, and of the pair that it makes with the one before.
func (c *scorer) add(word alternatives) {
	c.find(word)
	average := max(1, c.of.words/max(1, c.of.messages))
	rare := rarity(c.of.messages, max(float64(len(c.having)), c.of.having[word.word]))
	if slices.Contains(talkWords, word.word) {
		rare *= talkFactor
	}
	for _, n := range c.having {
		c.spread(n, rare*bm25(float64(c.counts[n]), float64(c.x.entries[n].words), average))
	}
	c.sum()
	rare = rarity(c.of.messages, max(float64(len(c.together)), c.of.having[c.pair]))
	for _, n := range c.together {
		c.spread(n, pairFactor*rare)
	}
	c.sum()
}

// follows tells whether one of the terms stands right behind one of the first.
func follows(order []uint16, first, terms []term) bool {
	one := func(of []term, short uint16) bool {
		return slices.ContainsFunc(of, func(t term) bool { return t.short() == short })
	}
	for i := 1; i < len(order); i++ {
		if one(first, order[i-1]) && one(terms, order[i]) {
			return true
		}
	}
	return false
}

// rarity is the weight of a word that some of all messages have.
func rarity(all, having float64) float64 {
	having = min(having, all)
	return math.Log(1 + (all-having+0.5)/(having+0.5))
}

// bm25 is the score of a word that occurs so often in a message of so many words.
func bm25(count, words, average float64) float64 {
	return count * (k1 + 1) / (count + k1*(1-b+b*words/average))
}

// spread gives an entry its score for the word at hand, and those around it what is
// passed on.
func (c *scorer) spread(n int32, own float64) {
	score := float32(own)
	c.pass(n, score)
	score *= c.x.entries[n].reach
	if c.alone {
		score *= aloneFactor
	}
	c.up(n, score*before)
	c.down(n, score*after, steps)
}

func (c *scorer) pass(n int32, score float32) {
	if c.passed[n] == 0 {
		c.reached = append(c.reached, n)
	}
	c.passed[n] = max(c.passed[n], score)
}

func (c *scorer) up(n int32, score float32) {
	for range steps {
		if n = c.scope.above[n]; n < 0 {
			return
		}
		c.pass(n, score)
		score *= c.x.entries[n].decay
	}
}

func (c *scorer) down(n int32, score float32, left int) {
	for child := c.scope.below[n]; child >= 0; child = c.scope.beside[child] {
		c.pass(child, score)
		if left > 1 {
			c.down(child, score*c.x.entries[child].decay, left-1)
		}
	}
}

// sum adds what was spread to the scores.
func (c *scorer) sum() {
	for _, n := range c.reached {
		c.scores[n] += float64(c.passed[n])
		c.passed[n] = 0
	}
	c.reached = c.reached[:0]
}
