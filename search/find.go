package search

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// around is how many messages before and after a hit an answer shows at most.
const around = 3

// excerptTokens is about what an excerpt costs, where it stands for a message
// for which there is no room.
const excerptTokens = 100

// found is what an answer will show. It is taken from an index, which may change
// as soon as this is done.
type found struct {
	searched, omitted int
	sought            map[term]bool
	ranking           Ranking
	hits              []foundHit
}

type foundHit struct {
	id            uuid.UUID
	score         float64
	onBranch      bool
	folded, whole bool        // whole: its body is shown
	before, after []uuid.UUID // oldest first
}

// find searches the scope of a question on a path, and chooses what there is
// room for.
func (x *index) find(path []int32, state tree.BranchState, q Question) found {
	first, end := x.folds(path, state)
	var s *scope
	switch {
	case q.Scope == ScopeFolded:
		s = x.newScope(path[first:end])
	case q.Scope.whole():
		s = x.everything()
	default:
		s = x.newScope(path)
	}
	f := found{searched: len(s.members), sought: terms(x.alternatives(s, q.Query))}
	hits := x.picks(q.picked)
	if q.picked == nil {
		hits, f.ranking = x.answers(s, q)
	}
	room := q.MaxTokens
	shown := map[int32]bool{}
	var numbers []int32
	for _, hit := range hits {
		e := &x.entries[hit.number]
		cost := int(e.tokens)
		whole := cost <= room
		if !whole {
			cost = excerptTokens
		}
		if cost > room {
			f.omitted++
			continue
		}
		room -= cost
		depth := int(e.depth)
		onBranch := depth < len(path) && path[depth] == hit.number
		shown[hit.number] = true
		numbers = append(numbers, hit.number)
		f.hits = append(f.hits, foundHit{
			id: e.id, score: hit.score, whole: whole,
			onBranch: onBranch, folded: onBranch && depth >= first && depth < end,
		})
	}
	x.surround(s, f.hits, numbers, shown, room)
	return f
}

// surround adds the messages around the hits: those next to each hit first, the
// best hit's before the others', and after it before before it, as answers
// follow questions.
func (x *index) surround(s *scope, hits []foundHit, numbers []int32, shown map[int32]bool, room int) {
	take := func(n int32) bool {
		if n < 0 || shown[n] || int(x.entries[n].tokens) > room {
			return false
		}
		shown[n] = true
		room -= int(x.entries[n].tokens)
		return true
	}
	type edge struct{ up, down int32 } // the last ones taken; -1 where no more can be
	edges := make([]edge, len(numbers))
	for i, n := range numbers {
		edges[i] = edge{n, n}
	}
	for range around {
		for i := range edges {
			e, h := &edges[i], &hits[i]
			if e.down >= 0 {
				if e.down = s.onlyChild(e.down); take(e.down) {
					h.after = append(h.after, x.entries[e.down].id)
				} else {
					e.down = -1
				}
			}
			if e.up >= 0 {
				if e.up = s.above[e.up]; take(e.up) {
					h.before = append([]uuid.UUID{x.entries[e.up].id}, h.before...)
				} else {
					e.up = -1
				}
			}
		}
	}
}

// onlyChild gives an entry's child in the scope; -1 where it has none, or several.
func (s *scope) onlyChild(n int32) int32 {
	child := s.below[n]
	if child >= 0 && s.beside[child] >= 0 {
		return -1
	}
	return child
}

// folds gives the part of a path that its applicable summary replaces: the one
// with the deepest anchor, and of several at one anchor the newest.
func (x *index) folds(path []int32, state tree.BranchState) (first, end int) {
	at := func(id uuid.UUID) int {
		if n, known := x.byID[id]; known {
			if depth := int(x.entries[n].depth); depth < len(path) && path[depth] == n {
				return depth
			}
		}
		return -1
	}
	deepest := -1
	for _, fold := range state.Folds {
		if anchor := at(fold.AnchorID); anchor > deepest {
			deepest, end = anchor, at(fold.CutoffID)+1
		}
	}
	return min(at(state.PrefixID)+1, end), end
}

// read makes the answer of what was found.
func (f found) read(ctx context.Context, store *tree.Store, conversationID uuid.UUID, q Question) (Answer, error) {
	if err := f.fit(ctx, store, conversationID, q.bytes); err != nil {
		return Answer{}, err
	}
	ids := f.ids()
	answer := Answer{Hits: make([]Hit, 0, len(f.hits)), Searched: f.searched, Omitted: f.omitted, Ranking: f.ranking}
	if len(ids) == 0 {
		return answer, nil
	}
	messages, err := store.Messages(ctx, conversationID, ids)
	if errors.Is(err, fault.NotFound) {
		return Answer{}, errChanged
	}
	if err != nil {
		return Answer{}, err
	}
	var hits []*chat.Message
	for at, i := 0, 0; i < len(f.hits); i++ {
		hits = append(hits, chat.Read(messages[at+len(f.hits[i].before)].Body))
		at += len(f.hits[i].before) + 1 + len(f.hits[i].after)
	}
	files, err := filesOf(ctx, store, hits...)
	if err != nil {
		return Answer{}, err
	}
	stems := newStemmer()
	for i, h := range f.hits {
		n, m := len(h.before), len(h.after)
		hit := Hit{Message: messages[n], Score: h.score, OnBranch: h.onBranch, Folded: h.folded, Before: messages[:n:n], After: messages[n+1 : n+1+m : n+1+m]}
		messages = messages[n+1+m:]
		text := files.recalled(hits[i])
		hit.Excerpt = excerpt(text, stems.found(text, f.sought))
		if !h.whole {
			hit.Message.Body = nil
		}
		answer.Hits = append(answer.Hits, hit)
	}
	return answer, nil
}

// ids are those of the messages that are shown: of each hit, with those around it.
func (f found) ids() (ids []uuid.UUID) {
	for _, h := range f.hits {
		ids = append(append(append(ids, h.before...), h.id), h.after...)
	}
	return ids
}

// fit leaves out the worst hits of which the messages would be read beyond so many
// bytes; the best one stays. Tokens don't bound metadata, nor what an excerpt stands for.
func (f *found) fit(ctx context.Context, store *tree.Store, conversationID uuid.UUID, most int) error {
	sizes, err := store.Index().Sizes(ctx, conversationID, f.ids())
	for i, h := range f.hits {
		if i > 0 && most <= 0 {
			f.hits, f.omitted = f.hits[:i], f.omitted+len(f.hits)-i
			break
		}
		most -= sizes[h.id]
		for _, id := range append(h.before[:len(h.before):len(h.before)], h.after...) {
			most -= sizes[id]
		}
	}
	return err
}
