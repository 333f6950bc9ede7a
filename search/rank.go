package search

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/google/uuid"
)

// How messages are ranked: BM25 over stems, where a term counts for a message
// by the best of its own score and those of the messages around it, which count
// the less the more words lie between. What a user said counts more than what a
// model said about it, and what a person said whom the question names counts
// more; a message of few words counts less.
//
// The constants were chosen on LoCoMo's conversations and on BEAM's of 500,000
// tokens; docs/benchmarks.md has what recall finds with them.
const (
	k1 = 0.9  // BM25: how soon a term that occurs again counts no more
	b  = 0.75 // BM25: how much the terms of a long message count less

	after      = 0.7 // of the score of the message before counts for a message
	before     = 0.5 // of the score of the message after
	steps      = 4   // how far a score is passed on, in messages
	decayWords = 40. // words between two messages that divide what is passed on by e

	reachWords = 30. // a longer message passes on less, as its words are about more
	reachPower = 0.4

	userFactor    = 2.0
	speakerFactor = 1.25
	shortWords    = 15. // a message of fewer words counts less
	shortPower    = 0.35

	maxTerms = 64 // of a question: the rarest
)

// A scope is the part of an index that is searched.
type scope struct {
	members []int32 // numbers of its entries
	inside  []bool  // by number
	above   []int32 // by number: the parent in the scope; -1 for none
	below   []int32 // by number: the first child in the scope; -1 for none
	beside  []int32 // by number: the next child of the same parent; -1 for none
}

// newScope is the scope of some entries, children in the order of their ids.
func (x *index) newScope(members []int32) *scope {
	n := len(x.entries)
	links := make([]int32, 3*n)
	for i := range links {
		links[i] = -1
	}
	s := &scope{members: members, inside: make([]bool, n), above: links[:n], below: links[n : 2*n], beside: links[2*n:]}
	for _, m := range members {
		s.inside[m] = true
	}
	for _, m := range members {
		if parent := x.entries[m].parent; parent >= 0 && s.inside[parent] {
			s.above[m] = parent
			s.beside[m], s.below[parent] = s.below[parent], m
		}
	}
	return s
}

// everything is the scope of all entries.
func (x *index) everything() *scope {
	members := make([]int32, len(x.entries))
	for i := range members {
		members[i] = int32(i)
	}
	return x.newScope(members)
}

// A ranked entry is one that answers a question, with its score.
type ranked struct {
	number int32
	score  float64
}

// alternatives are the terms that a word of a question has in the languages of
// the scope.
type alternatives struct {
	word  string
	terms []term
}

// statistics are what the weight of a word depends on: those of the scope that is
// searched, or of several conversations together, so that scores in one compare
// with scores in another.
type statistics struct {
	messages, words float64
	having          map[string]float64 // by a question's word: messages that have it
}

// count adds a scope's to the statistics.
func (of *statistics) count(x *index, s *scope, question string) {
	of.messages += float64(len(s.members))
	of.words += x.wordsIn(s)
	counted := make([]bool, len(x.entries))
	for _, w := range x.alternatives(s, question) {
		clear(counted)
		for _, t := range w.terms {
			for n := range x.postings[t].all() {
				if s.inside[n] && !counted[n] {
					counted[n] = true
					of.having[w.word]++
				}
			}
		}
	}
}

func (x *index) wordsIn(s *scope) (total float64) {
	for _, m := range s.members {
		total += float64(x.entries[m].words)
	}
	return total
}

// terms gives all terms of a question's words.
func terms(words []alternatives) map[term]bool {
	all := map[term]bool{}
	for _, w := range words {
		for _, t := range w.terms {
			all[t] = true
		}
	}
	return all
}

// rank gives the entries of a scope whose words answer a question best, best
// first. The statistics are nil where they are those of the scope.
func (x *index) rank(s *scope, question string, limit int, of *statistics) []ranked {
	words := x.alternatives(s, question)
	sought := terms(words)
	if of == nil {
		of = &statistics{messages: float64(len(s.members)), words: x.wordsIn(s)}
	}
	scorer := scorer{
		x: x, scope: s, of: of,
		counts: make([]float32, len(x.entries)), passed: make([]float32, len(x.entries)), scores: make([]float64, len(x.entries)),
	}
	for _, w := range words {
		scorer.add(w)
	}
	named := make([]bool, len(x.names))
	for i, terms := range x.names {
		for t := range terms {
			named[i] = named[i] || sought[t]
		}
	}
	best := make(worstFirst, 0, limit+1)
	top := &ranking{x, best}
	for _, m := range s.members {
		score := scorer.scores[m]
		if score <= 0 {
			continue
		}
		e := &x.entries[m]
		score *= float64(e.weight)
		if e.speaker > 0 && named[e.speaker-1] {
			score *= speakerFactor
		}
		top.offer(ranked{m, score}, limit)
	}
	slices.SortFunc(top.worstFirst, x.compare)
	return top.worstFirst
}

// alternatives gives the terms of a question's words, each word once, and of
// too many the rarest.
func (x *index) alternatives(s *scope, question string) (words []alternatives) {
	present := x.languages(s)
	stems := newStemmer() // of its own, as questions are asked at the same time
	seen, same := map[string]bool{}, map[term]bool{}
	for _, w := range wordsOf(question) {
		if seen[w.text] {
			continue
		}
		seen[w.text] = true
		var terms []term
		for _, l := range present {
			if t, ok := stems.termIn(w, l); ok && !slices.Contains(terms, t) {
				terms = append(terms, t)
			}
		}
		if len(terms) > 0 && !same[terms[0]] {
			same[terms[0]] = true
			words = append(words, alternatives{w.text, terms})
		}
	}
	if len(words) > maxTerms {
		words = x.rarest(s, words)
	}
	return words
}

// languages gives those that at least 2 % of a scope's messages are in, and
// English, which stands in where a message doesn't tell its language.
func (x *index) languages(s *scope) (present []language) {
	counts := make([]int, len(languages))
	for _, m := range s.members {
		counts[x.entries[m].language]++
	}
	for l, count := range counts {
		if l == 0 || count*50 >= len(s.members) && count > 0 {
			present = append(present, language(l))
		}
	}
	return present
}

// rarest keeps the words that fewest messages of the scope have, in their order,
// and none that no message has.
func (x *index) rarest(s *scope, words []alternatives) []alternatives {
	type place struct{ at, count int }
	var places []place
	for i, w := range words {
		count := 0
		for _, t := range w.terms {
			for n := range x.postings[t].all() {
				if s.inside[n] {
					count++
				}
			}
		}
		if count > 0 {
			places = append(places, place{i, count})
		}
	}
	slices.SortStableFunc(places, func(p, other place) int { return cmp.Compare(p.count, other.count) })
	places = places[:min(len(places), maxTerms)]
	slices.SortFunc(places, func(p, other place) int { return cmp.Compare(p.at, other.at) })
	kept := make([]alternatives, len(places))
	for i, p := range places {
		kept[i] = words[p.at]
	}
	return kept
}

// A scorer adds up the scores of a question's words. Its slices are by number.
type scorer struct {
	x      *index
	scope  *scope
	of     *statistics
	counts []float32
	passed []float32 // the best score for the word at hand, of an entry's own and what is passed on to it
	scores []float64

	having  []int32 // entries that have the word at hand
	reached []int32 // entries with something in passed
}

func (c *scorer) add(word alternatives) {
	c.having, c.reached = c.having[:0], c.reached[:0]
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
	all, having := c.of.messages, float64(len(c.having))
	having = max(having, c.of.having[word.word])
	average := max(1, c.of.words/max(1, all))
	rare := rarity(all, having)
	for _, n := range c.having {
		e := &c.x.entries[n]
		count := float64(c.counts[n])
		c.counts[n] = 0
		score := float32(rare * bm25(count, float64(e.words), average))
		c.pass(n, score)
		c.up(n, score*e.reach*before)
		c.down(n, score*e.reach*after, steps)
	}
	for _, n := range c.reached {
		c.scores[n] += float64(c.passed[n])
		c.passed[n] = 0
	}
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

// compare sorts the better one first; of two that are as good, the deeper one.
func (x *index) compare(r, other ranked) int {
	return cmp.Or(cmp.Compare(other.score, r.score), cmp.Compare(x.entries[other.number].depth, x.entries[r.number].depth),
		compareIDs(x.entries[r.number].id, x.entries[other.number].id))
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

type worstFirst []ranked

// A ranking is a heap whose first is the worst.
type ranking struct {
	x *index
	worstFirst
}

func (r *ranking) Len() int           { return len(r.worstFirst) }
func (r *ranking) Less(i, j int) bool { return r.x.compare(r.worstFirst[i], r.worstFirst[j]) > 0 }
func (r *ranking) Swap(i, j int) {
	r.worstFirst[i], r.worstFirst[j] = r.worstFirst[j], r.worstFirst[i]
}
func (r *ranking) Push(e any) { r.worstFirst = append(r.worstFirst, e.(ranked)) }
func (r *ranking) Pop() any {
	last := r.worstFirst[len(r.worstFirst)-1]
	r.worstFirst = r.worstFirst[:len(r.worstFirst)-1]
	return last
}
