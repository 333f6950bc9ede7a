package search

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// mostRanked is how many messages a search by relevance ranks, and rareChunks how
// many chunks it reads of a word beyond those that no segment names.
const (
	mostRanked = 1000
	rareChunks = 64
)

// scored is a candidate with a score, which is exact when it was read.
type scored struct {
	candidate
	score float64
	exact bool
}

// ranked returns the best messages that aren't newer than a time, so many of them at
// most, and the time of the newest one that it looked at.
func (x *extent) ranked(ctx context.Context, q query, upTo int64, want int) (best []candidate, newest int64, err error) {
	if err := x.look(ctx, q); err != nil {
		return nil, 0, err
	}
	if newest = upTo; upTo == math.MaxInt64 {
		newest = x.newestAt()
	}
	upper := candidate{at: upTo, Place: tree.Place{MessageID: uuid.Max, ConversationID: uuid.Max}}
	all, of := map[tree.Place]candidate{}, &wordStatistics{having: map[*wanted]float64{}}
	take := func(parts []*part) {
		for _, p := range parts {
			within := uint64(0)
			for i, at := range p.at {
				if at <= upTo {
					within |= 1 << i
				}
			}
			of.count(q, p, within)
			for _, c := range p.candidates(q.mask(p) & within) {
				all[c.Place] = c
			}
		}
	}
	if q.begins() {
		beginning, err := x.beginnings(ctx, upper)
		if err != nil {
			return nil, 0, err
		}
		for _, c := range beginning {
			all[c.Place] = c
		}
	}
	take(x.loose)
	if x.conversation != uuid.Nil {
		for len(all) < mostRanked {
			parts, _, more, err := x.next(ctx)
			if err != nil {
				return nil, 0, err
			}
			if !more {
				break
			}
			take(parts)
		}
	} else {
		of.add(x)
		parts, err := x.rare(ctx, q, len(all))
		if err != nil {
			return nil, 0, err
		}
		take(parts)
	}
	best, err = x.best(ctx, q, all, of, want)
	return best, newest, err
}

func (x *extent) newestAt() (newest int64) {
	for _, p := range x.loose {
		newest = max(newest, slices.Max(p.at))
	}
	for _, s := range x.segments {
		newest = max(newest, s.newestAt)
	}
	return newest
}

// rare reads chunks in segments that have the rarest words of a query, and of the
// others where there are not so many messages yet.
func (x *extent) rare(ctx context.Context, q query, messages int) (parts []*part, err error) {
	terms := slices.Clone(q.terms)
	slices.SortStableFunc(terms, func(a, b *wanted) int { return cmp.Compare(x.named[a], x.named[b]) })
	for _, t := range terms {
		if x.named[t] == 0 {
			continue
		}
		if x.named[t] > rareChunks && messages+len(parts) >= mostRanked {
			break
		}
		left := rareChunks
		y := &extent{store: x.store, make: x.make}
		if err := y.look(ctx, query{alternatives: [][]*clause{{{words: []*wanted{t}}}}, terms: []*wanted{t}}); err != nil {
			return nil, err
		}
		for left > 0 {
			some, _, more, err := y.next(ctx)
			if err != nil {
				return nil, err
			}
			if !more {
				break
			}
			parts, left = append(parts, some...), left-len(some)
		}
	}
	return parts, nil
}

// wordStatistics are what the weight of a word depends on.
type wordStatistics struct {
	messages, words float64
	having          map[*wanted]float64
	counted         float64 // messages whose words are known
}

func (of *wordStatistics) count(q query, p *part, within uint64) {
	for i, words := range p.words {
		if within&(1<<i) != 0 {
			of.messages++
			of.counted++
			of.words += float64(words)
		}
	}
	for _, t := range q.terms {
		of.having[t] += float64(bits.OnesCount64(p.has.having(t.hashes) & within))
	}
}

// add adds what segments tell: about as many messages in a chunk have a word as in
// those that are known.
func (of *wordStatistics) add(x *extent) {
	of.messages += float64(x.number * segmentChunks * chunkMessages)
	for t, chunks := range x.named {
		of.having[t] += float64(chunks)
	}
}

// score is BM25 with a word counted once in a message.
func (of *wordStatistics) score(words int, has func(*wanted) bool) (score float64) {
	average := max(1, of.words/max(1, of.counted))
	weight := bm25(1, float64(words), average)
	for t, having := range of.having {
		if has(t) {
			score += weight * rarity(of.messages, having)
		}
	}
	return score
}

// best reads messages from the best on, until so many match. A message that lacks
// some of the words in the form that is sought falls back to where it belongs.
func (x *extent) best(ctx context.Context, q query, all map[tree.Place]candidate, of *wordStatistics, want int) (best []candidate, err error) {
	waiting := make([]scored, 0, len(all))
	for _, c := range all {
		waiting = append(waiting, scored{c, of.score(c.words, func(t *wanted) bool { return c.part.has.having(t.hashes)&c.bit != 0 || q.goesOn(t) }), false})
	}
	order := func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), newestFirst(a.candidate, b.candidate))
	}
	slices.SortFunc(waiting, order)
	waiting = waiting[:min(len(waiting), mostRanked)]
	for len(best) < want && len(waiting) > 0 {
		if waiting[0].exact {
			best, waiting = append(best, waiting[0].candidate), waiting[1:]
			continue
		}
		var some []candidate
		n := 0
		for ; n < len(waiting) && len(some) < verified; n++ {
			if !waiting[n].exact {
				some = append(some, waiting[n].candidate)
			}
		}
		exact := map[tree.Place]float64{}
		if err := x.texts(ctx, some, func(at tree.Place, text string) {
			if !q.mayMatch(text) {
				return
			}
			if s := sayingOf(text); q.matches(s) {
				words := all[at].words
				exact[at] = of.score(words, func(t *wanted) bool { return q.has(s, t) })
			}
		}); err != nil {
			return nil, err
		}
		read := waiting[:n]
		waiting = waiting[n:]
		for _, c := range read {
			if score, matches := exact[c.Place]; c.exact || matches {
				if !c.exact {
					c.score, c.exact = score, true
				}
				waiting = append(waiting, c)
			}
		}
		slices.SortFunc(waiting, order)
	}
	return best, nil
}
