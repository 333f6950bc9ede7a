package recall

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
	defer fault.Wrap(&err, "recall.RecallTenant")
	q.Scope = ScopeTenant
	if q, err = q.checked(); err != nil {
		return Answer{}, err
	}
	return s.tenant(ctx, store, q)
}

func (s *Service) tenant(ctx context.Context, store *tree.Store, q Question) (all Answer, err error) {
	asked, err := candidates(ctx, store, q.Query)
	if err != nil {
		return Answer{}, err
	}
	of := &statistics{having: map[string]float64{}}
	if err := s.each(ctx, store, asked, func(x *index, _ int) { of.count(x, x.everything(), q.Query) }); err != nil {
		return Answer{}, err
	}
	type place struct {
		asked int
		score float64
	}
	var places []place
	if err := s.each(ctx, store, asked, func(x *index, i int) {
		hits, _ := x.rank(x.everything(), q.Query, q.Limit, of)
		for _, hit := range hits {
			places = append(places, place{i, hit.score})
		}
	}); err != nil {
		return Answer{}, err
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(b.score, a.score) })
	places = places[:min(len(places), q.Limit)]
	hits := make([]int, len(asked)) // that each conversation has among the best
	for _, p := range places {
		hits[p.asked]++
	}
	for i, id := range asked {
		part := q
		part.Limit, part.MaxTokens = hits[i], q.MaxTokens*hits[i]/max(1, len(places))
		if part.Limit == 0 {
			continue
		}
		var answer Answer
		err := s.ask(store, id, func(c *conversation) (err error) {
			answer, err = c.answer(ctx, store, uuid.Nil, part, of)
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
	all.Scope, all.Searched = ScopeTenant, int(of.messages)
	slices.SortStableFunc(all.Hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return all, nil
}

// each calls f with the index of each conversation, when that has all of it.
func (s *Service) each(ctx context.Context, store *tree.Store, ids []uuid.UUID, f func(x *index, i int)) error {
	for i, id := range ids {
		err := s.ask(store, id, func(c *conversation) error {
			_, err := c.search(ctx, store, uuid.Nil, ScopeTenant, func(x *index, _ []int32, _ tree.BranchState) { f(x, i) })
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
	if err != nil {
		return nil, err
	}
	messages := 0
	for _, c := range found {
		if len(ids) > 0 && messages+c.Messages > maxAskedMessages {
			continue
		}
		if ids, messages = append(ids, c.ConversationID), messages+c.Messages; len(ids) == maxAsked {
			break
		}
	}
	return ids, nil
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
