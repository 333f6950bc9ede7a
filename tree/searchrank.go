package tree

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

// Ranking is BM25 over whole words, with a word counted once in a message: the
// index doesn't say how often it occurs.
const (
	rankK = 0.9  // how much length counts beside a word's rarity
	rankB = 0.75 // how much longer messages count less
)

// ranked gives the messages that match, the best first, and the newest message
// that it looked at.
func (in extent) ranked(ctx context.Context, q sought, before cursor) (best []spot, newest cursor, err error) {
	found, err := in.look(ctx, q, before, recentLooks, recentLooks)
	if err != nil {
		return nil, cursor{}, err
	}
	r := ranking{seen: map[spot]bool{}, having: make([]float64, len(q.terms))}
	if err := r.add(ctx, in, q, found.spots); err != nil || found.all {
		return r.best(float64(max(1, len(r.measured)))), found.first, err
	}
	all := int64(in.messages)
	if !in.conversation.Valid {
		if all, err = in.s.messages(ctx); err != nil {
			return nil, cursor{}, err
		}
	}
	// As common as a word is among the newest, so it is taken to be in all.
	scale := max(1, float64(all)/recentLooks)
	for i := range r.having {
		r.having[i] *= scale
	}
	if entries, patterns := r.rare(q, in.s.mostFound); entries != "" {
		more, err := in.byIndex(ctx, q, entries, patterns, before, recentLooks)
		if err == nil {
			err = r.add(ctx, in, q, more)
		}
		if err != nil {
			return nil, cursor{}, err
		}
	}
	return r.best(float64(max(1, all))), found.first, nil
}

// A ranking is of messages that were measured.
type ranking struct {
	measured []measured
	seen     map[spot]bool
	having   []float64 // by term: about how many messages have it
}

type measured struct {
	spot
	words int
	found []bool // by term
	score float64
}

// add measures the messages that aren't measured yet.
func (r *ranking) add(ctx context.Context, in extent, q sought, spots []spot) error {
	var which db.MeasureHitsParams
	var added []spot
	for _, at := range spots {
		if !r.seen[at] {
			r.seen[at] = true
			added = append(added, at)
			which.ConversationIds, which.Ids = append(which.ConversationIds, at.conversation), append(which.Ids, at.id)
		}
	}
	for _, term := range q.terms {
		word := fmt.Sprintf("'%s'", strings.ReplaceAll(strings.ReplaceAll(term, `\`, `\\`), "'", "''"))
		if term == q.prefix {
			word += ":*"
		}
		which.Terms = append(which.Terms, word)
	}
	rows, err := in.measure(ctx, q, which)
	for _, row := range rows {
		r.measured = append(r.measured, measured{spot: added[row.Place-1], words: int(row.Words), found: row.Found})
		for i, has := range row.Found {
			if has {
				r.having[i]++
			}
		}
	}
	return err
}

func (in extent) measure(ctx context.Context, q sought, which db.MeasureHitsParams) ([]db.MeasureHitsRow, error) {
	if !q.inShards {
		return in.s.q.MeasureHits(ctx, which)
	}
	rows, err := in.s.q.MeasureHitsInShards(ctx, db.MeasureHitsInShardsParams{ConversationIds: which.ConversationIds, Ids: which.Ids, Terms: which.Terms})
	out := make([]db.MeasureHitsRow, len(rows))
	for i, row := range rows {
		out[i] = db.MeasureHitsRow(row)
	}
	return out, err
}

// rare gives the entries of the rarest words, and their patterns: of as many as
// the index finds recentLooks messages by, but of one at least if it finds few
// enough.
func (r *ranking) rare(q sought, most int) (entries string, patterns []string) {
	if q.required {
		return q.entries, q.patterns
	}
	order := make([]int, len(q.terms))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(r.having[i], r.having[j]), cmp.Compare(i, j)) })
	var some []string
	expected := 0.0
	for _, i := range order {
		expected += r.having[i]
		if expected > recentLooks && len(some) > 0 || expected > float64(most) {
			break
		}
		some, patterns = append(some, q.entriesOf[q.terms[i]]), append(patterns, q.patterns[i])
	}
	return strings.Join(some, " | "), patterns
}

// best sorts messages of an extent of so many.
func (r *ranking) best(all float64) []spot {
	length := 0.0
	for _, m := range r.measured {
		length += float64(m.words) / float64(len(r.measured))
	}
	for i := range r.measured {
		m := &r.measured[i]
		weight := (rankK + 1) / (1 + rankK*(1-rankB+rankB*float64(m.words)/max(1, length)))
		for term, has := range m.found {
			if has {
				having := min(all, r.having[term])
				m.score += weight * math.Log(1+(all-having+0.5)/(having+0.5))
			}
		}
	}
	slices.SortFunc(r.measured, func(a, b measured) int { return cmp.Or(cmp.Compare(b.score, a.score), later(a.spot, b.spot)) })
	out := make([]spot, len(r.measured))
	for i, m := range r.measured {
		out[i] = m.spot
	}
	return out
}

// A rankedCursor is a cursor of a ranked list: how many rows stand before the
// page, and the time of the newest message that was there when the first page was
// asked for, in the place of an id. The list is made again for each page, without
// what came later.
type rankedCursor struct{ cursor }

func (c rankedCursor) offset() int { return int(c.key) }

// before is what the messages of the list stand before.
func (c rankedCursor) before() cursor {
	if c.id == uuid.Max {
		return first
	}
	return cursor{key: c.newest() + 1}
}

func (c rankedCursor) newest() int64 { return int64(binary.BigEndian.Uint64(c.id[:])) }

// next is the cursor of the page after this one.
func (c rankedCursor) next(shown int, newest cursor) rankedCursor {
	c.key += int64(shown)
	if c.id == uuid.Max {
		c.id = uuid.Nil
		binary.BigEndian.PutUint64(c.id[:], uint64(newest.key))
	}
	return c
}

// ranked is page for a ranked list.
func (p Paging) ranked(list ...string) (limit int, after rankedCursor, err error) {
	limit, at, err := p.page(list...)
	if err == nil && p.Cursor == "" {
		at.key = 0
	}
	after = rankedCursor{at}
	if err == nil && (at.key < 0 || at.key > 2*recentLooks || at.id != uuid.Max && (after.newest() < minKey || after.newest() >= maxKey)) {
		err = errCursor
	}
	return limit, after, err
}

// messages tells about how many messages the tenant has.
func (s *Store) messages(ctx context.Context) (int64, error) {
	if n, _, _, ok := s.sizes.add(s.tenant, 0, 0); ok {
		return n, nil
	}
	n, err := s.q.CountMessages(ctx, s.tenant)
	if err == nil {
		s.sizes.set(s.tenant, n)
	}
	return n, err
}
