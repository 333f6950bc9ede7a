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
// the less the more words lie between. Two words of the question that stand together
// count like a word besides. What a user said counts more than what a model said
// about it, and what a person said whom the question names, or whom the others call by
// a name in it, counts more; so does what may answer a question for a time, a number or
// a name, and what was said on a day that it names. A message of few words counts less,
// and so does a question.
//
// The constants were chosen on LoCoMo's conversations and on BEAM's of 500,000
// tokens, and each rule was kept as it helped on datasets that it wasn't chosen on;
// docs/benchmarks.md has what recall finds with them.
const (
	k1 = 0.9  // BM25: how soon a term that occurs again counts no more
	b  = 0.75 // BM25: how much the terms of a long message count less

	after       = 0.7  // of the score of the message before counts for a message
	before      = 0.45 // of the score of the message after
	steps       = 4    // how far a score is passed on, in messages
	decayWords  = 40.  // words between two messages that divide what is passed on by e
	aloneFactor = 0.25 // of what is passed on where nobody answers
	aloneShare  = 0.1  // of the messages follow another speaker's at most, where nobody answers

	reachWords = 30. // a longer message passes on less, as its words are about more
	reachPower = 0.4

	pairFactor = 0.3 // of a word's score counts a pair of them
	talkFactor = 0.5 // of a word's score counts one about the talk itself

	userMost      = 2.5 // what a user says counts more by the power of how much longer an assistant's messages are
	userPower     = 0.5
	speakerFactor = 1.5
	callsLeast    = 3   // times that others call somebody by a name who has none
	callsSide     = 4   // times as often as they are called so
	kindFactor    = 1.3 // for what may answer when, how many, who or where
	dayFactor     = 4.0 // for a message of the day that the question names
	monthFactor   = 2.5
	askingFactor  = 0.85 // for a message that ends in a question
	shortWords    = 15.  // a message of fewer words counts less
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

// newScope is the scope of some entries, children in the order of their ids. Those that
// are unread come first, and are left out.
func (x *index) newScope(members []int32) *scope {
	n := len(x.entries)
	for len(members) > 0 && members[0] == unread {
		members = members[1:]
	}
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

// statistics are what scores depend on besides a message: those of the scope that is
// searched, or of several conversations together, so that scores in one compare with
// scores in another.
type statistics struct {
	messages, words float64
	having          map[string]float64 // by a question's word, or a pair of them: messages that have it
	spoken, said    [2]float64         // messages and words of users, and of assistants
	parted, other   float64            // messages below one of the scope, and below one of another speaker
}

func newStatistics() *statistics { return &statistics{having: map[string]float64{}} }

// count adds a scope's to the statistics.
func (of *statistics) count(x *index, s *scope) {
	of.messages += float64(len(s.members))
	for _, m := range s.members {
		e := &x.entries[m]
		of.words += float64(e.words)
		for i, role := range []marks{ofUser, ofAssistant} {
			if e.marks&role != 0 {
				of.spoken[i]++
				of.said[i] += float64(e.words)
			}
		}
		if above := s.above[m]; above >= 0 {
			of.parted++
			if !x.sameSpeaker(m, above) {
				of.other++
			}
		}
	}
}

// countWords adds the messages of a scope that have a question's words.
func (of *statistics) countWords(x *index, s *scope, question string) {
	scorer := x.newScorer(s, of)
	for _, w := range x.alternatives(s, question) {
		scorer.find(w)
		of.having[w.word] += float64(len(scorer.having))
		of.having[scorer.pair] += float64(len(scorer.together))
	}
}

// alone tells whether hardly any message follows one of another speaker: then it
// answers none.
func (of *statistics) alone() bool { return of.other < aloneShare*of.parted }

// userFactor is by how much what users say counts more: the more, the longer an
// assistant's messages are. An assistant who is as brief as the user is a person.
func (of *statistics) userFactor() float64 {
	user, assistant := of.said[0]/max(1, of.spoken[0]), of.said[1]/max(1, of.spoken[1])
	return min(userMost, max(1, math.Pow(assistant/max(1, user), userPower)))
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
	if of == nil {
		of = newStatistics()
		of.count(x, s)
	}
	return x.rankBy(s, x.alternatives(s, question), question, limit, of)
}

// rankBy does so by words that the question may have besides.
func (x *index) rankBy(s *scope, words []alternatives, question string, limit int, of *statistics) []ranked {
	sought := terms(words)
	scorer := x.newScorer(s, of)
	for _, w := range words {
		scorer.add(w)
	}
	asked, userFactor := askedBy(question), of.userFactor()
	named := make([]bool, len(x.names)+1)
	for i, terms := range x.names {
		for t := range terms {
			named[i+1] = named[i+1] || sought[t]
		}
	}
	called := x.called(s, named)
	var all []ranked
	for _, m := range s.members {
		score := scorer.scores[m]
		if score <= 0 {
			continue
		}
		e := &x.entries[m]
		score *= float64(e.weight) * asked.factor(e.at)
		if e.speaker > 0 && named[e.speaker] || e.speaker == 0 && called[e.marks&isSaid] {
			score *= speakerFactor
		}
		if e.marks&ofUser != 0 {
			score *= userFactor
		}
		if e.marks&asked.marks != 0 {
			score *= kindFactor
		}
		if e.marks&endsAsking != 0 {
			score *= askingFactor
		}
		all = x.keep(all, ranked{m, score}, limit)
	}
	return x.best(all, limit)
}

// called tells whether users are, or assistants, whom a question names: those whom the
// others call so, and who hardly call anybody so.
func (x *index) called(s *scope, named []bool) map[marks]bool {
	calls := map[marks]int{}
	for _, m := range s.members {
		if e := &x.entries[m]; named[e.calls] {
			calls[e.marks&isSaid]++
		}
	}
	of := func(role, other marks) bool {
		return calls[other] >= callsLeast && calls[other] >= callsSide*calls[role]
	}
	return map[marks]bool{ofUser: of(ofUser, ofAssistant), ofAssistant: of(ofAssistant, ofUser)}
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
		terms := stems.termsIn(present, w)
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

// termsIn gives the terms of words in some languages.
func (s *stemmer) termsIn(present []language, words ...word) (terms []term) {
	for _, w := range words {
		for _, l := range present {
			if t, ok := s.termIn(w, l); ok && !slices.Contains(terms, t) {
				terms = append(terms, t)
			}
		}
	}
	return terms
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

// keep adds an entry to those of which best takes so many. It drops the worst from time
// to time: of 100,000 entries that takes a fifth of the time in which all are sorted.
func (x *index) keep(all []ranked, r ranked, most int) []ranked {
	if len(all) == 8*most {
		all = x.best(all, most)
	}
	return append(all, r)
}

// best sorts entries and keeps so many, the best first.
func (x *index) best(all []ranked, most int) []ranked {
	slices.SortFunc(all, x.compare)
	return all[:min(len(all), most)]
}

// compare sorts the better one first; of two that are as good, the deeper one.
func (x *index) compare(r, other ranked) int {
	return cmp.Or(cmp.Compare(other.score, r.score), cmp.Compare(x.entries[other.number].depth, x.entries[r.number].depth),
		compareIDs(x.entries[r.number].id, x.entries[other.number].id))
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
