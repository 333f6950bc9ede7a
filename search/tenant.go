package search

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A question to a tenant looks into this many conversations at most, and into so
// many messages, unless the first conversation alone has more.
const (
	maxAsked         = 8
	maxAskedMessages = 50_000
)

// RecallTenant returns the messages of any of the tenant's conversations that
// answer a question. It ignores the question's scope.
//
// The index of words that searches use names the conversations that have most
// of the question's words, rare words before common ones. RecallTenant ranks
// all branches of the best eight as Recall does, with the words' weights over
// the eight together. If no conversation has any of the words, it ranks the
// conversations that were touched last.
func (s *Service) RecallTenant(ctx context.Context, store *tree.Store, q Question) (_ Answer, err error) {
	defer fault.Wrap(&err, "search.RecallTenant")
	q.Scope = ScopeTenant
	if q, err = s.checked(access.With(ctx, store.TenantID()), q); err != nil {
		return Answer{}, err
	}
	return s.tenant(ctx, store, q)
}

func (s *Service) tenant(ctx context.Context, store *tree.Store, q Question) (all Answer, err error) {
	asked, err := s.candidates(ctx, store, q.Query)
	if err != nil {
		return Answer{}, err
	}
	near, err := s.near(ctx, store, q)
	if err != nil {
		return Answer{}, err
	}
	if asked, near, err = join(ctx, store, asked, near); err != nil {
		return Answer{}, err
	}
	of := newStatistics()
	if err := s.each(ctx, store, asked, q, func(x *index, _ int) {
		all := x.everything()
		of.count(x, all)
		of.countWords(x, all, q.Query)
	}); err != nil {
		return Answer{}, err
	}
	all.Scope, all.Searched = ScopeTenant, int(of.messages)
	hits, ranking, err := s.choose(ctx, store, asked, near, q, of)
	if err != nil {
		return Answer{}, err
	}
	all.Ranking = ranking
	for _, id := range asked {
		part := q
		for _, h := range hits {
			if h.ConversationID == id {
				part.picked = append(part.picked, picked{h.MessageID, h.score})
			}
		}
		if len(part.picked) == 0 {
			continue
		}
		part.MaxTokens = q.MaxTokens * len(part.picked) / len(hits)
		part.bytes = q.bytes * len(part.picked) / len(hits)
		var answer Answer
		err := s.ask(store, id, func(c *conversation) (err error) {
			answer, err = c.answer(ctx, store, uuid.Nil, part)
			return err
		})
		if errors.Is(err, fault.NotFound) { // deleted meanwhile
			continue
		}
		if err != nil {
			return Answer{}, err
		}
		all.Hits, all.Omitted = append(all.Hits, answer.Hits...), all.Omitted+answer.Omitted
	}
	slices.SortStableFunc(all.Hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	all.Incomplete = q.reads.short
	return all, nil
}

// join adds to the conversations that are asked those of the near places, the
// nearest first, and leaves out places of others.
func join(ctx context.Context, store *tree.Store, asked []uuid.UUID, near []tree.Place) ([]uuid.UUID, []tree.Place, error) {
	if len(near) == 0 {
		return asked, nil, nil
	}
	var ids []uuid.UUID
	for _, p := range near {
		if !slices.Contains(ids, p.ConversationID) {
			ids = append(ids, p.ConversationID)
		}
	}
	own, err := store.Index().Own(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range within(own) {
		if !slices.Contains(asked, id) {
			asked = append(asked, id)
		}
	}
	near = slices.DeleteFunc(near, func(p tree.Place) bool { return !slices.Contains(asked, p.ConversationID) })
	return asked, near, nil
}

// A placed message is a hit in some conversation.
type placed struct {
	tree.Place
	score float64
}

// choose gives the best messages of the conversations: by words, and by near
// places where there are some.
func (s *Service) choose(ctx context.Context, store *tree.Store, asked []uuid.UUID, near []tree.Place, q Question, of *statistics) (hits []placed, ranking Ranking, err error) {
	limit, ranking := q.Limit, q.byWords()
	if len(near) > 0 {
		limit, ranking = max(limit, fusionDepth), RankingEmbeddings
	}
	err = s.each(ctx, store, asked, q, func(x *index, i int) {
		for _, h := range x.rank(x.everything(), q.Query, limit, of) {
			hits = append(hits, placed{tree.Place{ConversationID: asked[i], MessageID: x.entries[h.number].id}, h.score})
		}
	})
	slices.SortStableFunc(hits, func(a, b placed) int { return cmp.Compare(b.score, a.score) })
	hits = hits[:min(len(hits), limit)]
	if len(near) > 0 {
		words := make([]tree.Place, len(hits))
		for i, h := range hits {
			words[i] = h.Place
		}
		hits = hits[:0]
		for place, score := range fuse(words, near) {
			hits = append(hits, placed{place, score})
		}
		slices.SortFunc(hits, func(a, b placed) int {
			return cmp.Or(cmp.Compare(b.score, a.score), compareIDs(a.MessageID, b.MessageID))
		})
	}
	return hits[:min(len(hits), q.Limit)], ranking, err
}

// each calls f with the index of each conversation, when that has all of it.
func (s *Service) each(ctx context.Context, store *tree.Store, ids []uuid.UUID, q Question, f func(x *index, i int)) error {
	for i, id := range ids {
		err := s.ask(store, id, func(c *conversation) error {
			_, err := c.search(ctx, store, uuid.Nil, q, func(x *index, _ []int32, _ tree.BranchState) { f(x, i) })
			return err
		})
		if err != nil && !errors.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

// A conversation scores by the words that it has, rare ones before common ones. Of a
// word that many chunks have, the newest of these count.
const (
	maxWordChunks = 256
	maxCandidates = 20
)

// candidates gives the conversations to look into, the likeliest first. If no
// conversation has any of the words, it gives those that were touched last.
func (s *Service) candidates(ctx context.Context, store *tree.Store, question string) (ids []uuid.UUID, err error) {
	scores := map[uuid.UUID]float64{}
	if err := store.Index().Reading(ctx, func(store *tree.Store) error {
		x, err := s.open(ctx, store, Within{})
		if err != nil {
			return err
		}
		for _, t := range lookedUp(question) {
			counts, err := x.conversationsOf(ctx, t)
			if err != nil {
				return err
			}
			all := 0
			for _, n := range counts {
				all += n
			}
			for id, n := range counts {
				scores[id] += math.Log1p(maxWordChunks/float64(1+all)) * (1.05 - 0.05/float64(n)) // that it occurs again counts for little
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if len(scores) == 0 {
		last, err := store.Conversations(ctx, tree.ConversationFilter{}, tree.Paging{Limit: maxCandidates})
		for _, c := range last.Data {
			if c.MessageCount() > 0 {
				ids = append(ids, c.ID)
			}
		}
		if err != nil {
			return nil, err
		}
	} else {
		ids = slices.SortedFunc(maps.Keys(scores), func(a, b uuid.UUID) int {
			return cmp.Or(cmp.Compare(scores[b], scores[a]), compareIDs(b, a))
		})
	}
	own, err := store.Index().Own(ctx, ids[:min(len(ids), maxCandidates)])
	return within(own), err
}

// conversationsOf gives the conversations that have a word, and how many of their
// messages, or chunks in segments, do.
func (x *extent) conversationsOf(ctx context.Context, t *wanted) (map[uuid.UUID]int, error) {
	counts := map[uuid.UUID]int{}
	parts, err := x.having(ctx, t, maxWordChunks)
	for _, p := range slices.Concat(x.loose, parts) {
		if n := bits.OnesCount64(p.having(t)); n > 0 {
			counts[p.conversationID] += n
		}
	}
	return counts, err
}

// within gives those of the candidates that there is time for.
func within(found []tree.Candidate) (ids []uuid.UUID) {
	messages := 0
	for _, c := range found {
		if len(ids) > 0 && messages+c.Messages > maxAskedMessages {
			continue
		}
		if ids, messages = append(ids, c.ConversationID), messages+c.Messages; len(ids) == maxAsked {
			break
		}
	}
	return ids
}

// lookedUp gives the words of a question to look up in the index of words: the
// longest ones, as they are the rarest.
func lookedUp(question string) (terms []*wanted) {
	all := wordsOf(question)
	l := languageOf(all)
	all = slices.DeleteFunc(all, func(w word) bool { return w.part || !w.bigram && l.isStopword(w.text) })
	slices.SortStableFunc(all, func(a, b word) int {
		return cmp.Compare(utf8.RuneCountInString(b.text), utf8.RuneCountInString(a.text))
	})
	p := parser{known: map[string]*wanted{}, stems: newStemmer()}
	for _, w := range all {
		if t := p.term(w); !slices.Contains(terms, t) {
			if terms = append(terms, t); len(terms) == MaxTerms {
				break
			}
		}
	}
	return terms
}
