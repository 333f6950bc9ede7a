package search

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"

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
// conversations that were touched last, because a script without spaces between
// words has no words to look up.
func (s *Service) RecallTenant(ctx context.Context, store *tree.Store, q Question) (_ Answer, err error) {
	defer fault.Wrap(&err, "search.RecallTenant")
	q.Scope = ScopeTenant
	if q, err = q.checked(); err != nil {
		return Answer{}, err
	}
	q.meaning = s.meaningOf(ctx, q.Query)
	return s.tenant(ctx, store, q)
}

func (s *Service) tenant(ctx context.Context, store *tree.Store, q Question) (all Answer, err error) {
	asked, err := candidates(ctx, store, q.Query)
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
	of := &statistics{having: map[string]float64{}}
	if err := s.each(ctx, store, asked, q, func(x *index, _ int) { of.count(x, x.everything(), q.Query) }); err != nil {
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
	own, err := store.Own(ctx, ids)
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

// candidates gives the conversations to look into, the likeliest first.
func candidates(ctx context.Context, store *tree.Store, question string) (ids []uuid.UUID, err error) {
	found, err := store.Candidates(ctx, lookedUp(question))
	return within(found), err
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

// lookedUp gives the words of a question to look up in an index of whole words:
// the longest ones, as they are the rarest, and after them the stems, which other
// forms of the words may be.
func lookedUp(question string) (words []string) {
	all := wordsOf(question)
	language, stems := languageOf(all), newStemmer()
	add := func(word string) {
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	for _, w := range all {
		if !w.bigram && !language.isStopword(w.text) {
			add(w.text)
		}
	}
	slices.SortStableFunc(words, func(a, b string) int {
		return cmp.Compare(utf8.RuneCountInString(b), utf8.RuneCountInString(a))
	})
	words = words[:min(len(words), tree.MaxTerms)]
	for _, w := range slices.Clone(words) {
		add(stems.stem(w, language))
	}
	return words[:min(len(words), tree.MaxTerms)]
}
