package search

import (
	"cmp"
	"context"
	"maps"
	"math/bits"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

// A search by relevance looks at about so many messages that have the words, and ranks
// the likeliest of them. It reads so many chunks of a word beyond those that no segment
// names.
const (
	mostMatches = 1000
	mostRanked  = 250
	rareChunks  = 64
)

// ranked returns the best messages that aren't newer than a time, of those since x.since. It reads the likeliest,
// and ranks them as the answers of a question: a message counts for itself alone, and
// words weigh as they are rare in all that the search searches.
func (x *extent) ranked(ctx context.Context, q query, upTo int64) (_ []candidate, err error) {
	if err := x.look(ctx, q); err != nil {
		return nil, err
	}
	m := &matches{q: q, since: x.since, upTo: upTo, all: map[tree.Place]match{}, having: make([]float64, len(q.terms))}
	if q.begins() {
		beginning, err := x.beginnings(ctx, candidate{at: upTo, Place: tree.Place{MessageID: uuid.Max, ConversationID: uuid.Max}})
		if err != nil {
			return nil, err
		}
		for _, c := range beginning {
			m.all[c.Place] = match{candidate: c}
		}
	}
	m.take(x.loose)
	if x.conversation == uuid.Nil {
		m.messages += float64(x.number * segmentChunks * chunkMessages)
		for i, t := range q.terms { // about as many messages in a chunk have a word as in those that are known
			m.having[i] += float64(x.named[t])
		}
		parts, err := x.rare(ctx, q, len(m.all))
		if err != nil {
			return nil, err
		}
		m.take(parts)
	}
	for more := x.conversation != uuid.Nil; more && len(m.all) < mostMatches; {
		var parts []*part
		if parts, more, err = x.next(ctx); err != nil {
			return nil, err
		}
		more = more && x.bound() >= x.since
		m.take(parts)
	}
	return x.best(ctx, q, m)
}

// matches are messages that have words of a query, and what the chunks tell of words.
type matches struct {
	q        query
	since    int64
	upTo     int64
	all      map[tree.Place]match
	messages float64
	having   []float64 // messages by the query's terms
}

type match struct {
	candidate
	having [MaxTerms]bool // of the query's terms
	weight float64        // sum of the rarities of its terms; likeliest's
}

func (m *matches) take(parts []*part) {
	for _, p := range parts {
		within := uint64(0)
		for i, at := range p.at {
			if m.since <= at && at <= m.upTo {
				within |= 1 << i
			}
		}
		m.messages += float64(bits.OnesCount64(within))
		var masks [MaxTerms]uint64
		for i, t := range m.q.terms {
			masks[i] = p.having(t) & within
			m.having[i] += float64(bits.OnesCount64(masks[i]))
		}
		for _, c := range p.candidates(m.q.mask(p) & within) {
			found := match{candidate: c}
			for i, mask := range masks {
				found.having[i] = mask&c.bit != 0
			}
			m.all[c.Place] = found
		}
	}
}

// likeliest returns the matches that have the rarest words, the newest first.
func (m *matches) likeliest() (out []candidate) {
	all := slices.Collect(maps.Values(m.all))
	for i, t := range m.q.terms {
		weight, goesOn := rarity(m.messages, m.having[i]), m.q.goesOn(t)
		for n := range all {
			if c := &all[n]; c.having[i] || goesOn {
				c.weight += weight
			}
		}
	}
	slices.SortFunc(all, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), newestFirst(a.candidate, b.candidate))
	})
	for _, c := range all[:min(len(all), mostRanked)] {
		out = append(out, c.candidate)
	}
	slices.SortFunc(out, newestFirst)
	return out
}

// best reads the likeliest messages, and returns those that match, the best first. Those
// that have none of the words as a question has them stand last.
func (x *extent) best(ctx context.Context, q query, m *matches) (best []candidate, err error) {
	likeliest := m.likeliest()
	place := make(map[tree.Place]int, len(likeliest))
	for i, c := range likeliest {
		place[c.Place] = i
	}
	known, begun := newIndex(), map[*wanted][]word{}
	known.stems = x.make.stems
	var read []int // by entry: its place among the likeliest
	if err := x.texts(ctx, likeliest, func(at tree.Place, t tree.MessageText, m *chat.Message, text string) {
		if !q.mayMatch(text) {
			return
		}
		s := sayingOf(text)
		if !q.matches(s) {
			return
		}
		t.ParentID, t.Depth = uuid.Nil, -place[at] // of two that are as good, the newer one is better
		known.add(t, m.Name, text, s.words)
		read = append(read, place[at])
		for _, w := range q.terms {
			if q.goesOn(w) {
				for _, i := range (&clause{words: []*wanted{w}, beginning: true}).places(s) {
					begun[w] = append(begun[w], s.words[i])
				}
			}
		}
	}); err != nil {
		return nil, err
	}
	scope, of := known.everything(), newStatistics()
	of.count(known, scope)
	of.words, of.messages = of.words*m.messages/max(1, of.messages), m.messages
	words := known.alternatives(scope, q.text)
	for _, w := range words {
		if i := slices.IndexFunc(q.terms, func(t *wanted) bool { return t.text == withoutAccents(w.word) }); i >= 0 {
			of.having[w.word] = m.having[i]
		}
	}
	for t, goingOn := range begun {
		words = append(words, alternatives{t.text, known.stems.termsIn(known.languages(scope), goingOn...)})
	}
	for _, r := range known.rankBy(scope, words, q.text, mostRanked, of) {
		best, read[r.number] = append(best, likeliest[read[r.number]]), -1
	}
	slices.Sort(read)
	for _, i := range read {
		if i >= 0 {
			best = append(best, likeliest[i])
		}
	}
	return best, nil
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
		if x.named[t] > rareChunks && messages+len(parts) >= mostMatches {
			break
		}
		some, err := x.having(ctx, t, rareChunks)
		if err != nil {
			return nil, err
		}
		parts = append(parts, some...)
	}
	return parts, nil
}
