package search

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

const (
	mostTitles = 20  // that Titles gives
	titlesPage = 100 // that are read together
	mostListed = 150 // conversations with a match that a list names: if there are more, it looks at all in turn
)

// Titles finds conversations whose titles match a query, in the syntax of Messages.
// It returns up to 20, the one in which something was last said or pruned first.
func (s *Service) Titles(ctx context.Context, store *tree.Store, text string) (out []tree.Conversation, err error) {
	defer fault.Wrap(&err, "search.Titles")
	err = s.searching(ctx, store, text, allWords, uuid.Nil, func(ctx context.Context, store *tree.Store, q query) error {
		behind, err := s.unfollowed(ctx, store, uuid.Nil)
		if err == nil {
			out, err = titled(ctx, store, q, behind, mostTitles)
		}
		return err
	})
	return out, err
}

// titled returns so many conversations at most whose titles match. Those that the
// follower is behind in are looked at.
func titled(ctx context.Context, store *tree.Store, q query, behind []tree.Pending, most int) (out []tree.Conversation, err error) {
	var among []uuid.UUID
	for _, p := range behind {
		among = append(among, p.ConversationID)
	}
	words, beginnings := q.inTitles()
	err = store.Index().Titled(ctx, words, beginnings, among, func(c tree.Conversation) bool {
		if q.matches(sayingOf(c.Title)) {
			out = append(out, c)
		}
		return len(out) < most
	})
	return out, err
}

// inTitles returns, of each alternative, the longest word that must occur, which is one
// of words, or the beginning of one.
func (q query) inTitles() (words, beginnings []string) {
	for _, a := range q.alternatives {
		longest, beginning := "", false
		for _, c := range a {
			for _, t := range c.words {
				if !c.negated && len(t.text) > len(longest) {
					longest, beginning = t.text, c.beginning
				}
			}
		}
		if longest = titleWord(longest); beginning {
			beginnings = append(beginnings, longest)
		} else {
			words = append(words, longest)
		}
	}
	return words, beginnings
}

// titleLetters is how many letters a word in the index of titles has at most.
const titleLetters = 64

func titleWord(text string) string {
	if r := []rune(text); len(r) > titleLetters {
		return string(r[:titleLetters])
	}
	return text
}

// titleWords returns the words by which a conversation's title is found, not nil. A letter
// of a script without spaces is sought alone, too.
func titleWords(ctx context.Context, store *tree.Store, id uuid.UUID) ([]string, error) {
	words := []string{}
	c, err := store.Conversation(ctx, id)
	if errors.Is(err, fault.NotFound) { // deleted meanwhile
		return words, nil
	}
	for _, w := range wordsOf(c.Title) {
		text := withoutAccents(w.text)
		words = append(words, titleWord(text))
		if w.bigram {
			words = append(words, strings.Split(text, "")...)
		}
	}
	slices.Sort(words)
	return slices.Compact(words), err
}

// Conversations lists conversations as tree.Store.Conversations does. A query keeps
// those whose title Titles would find, and those with a message that Messages would
// find; a query without a word keeps none. incomplete tells that messages aren't indexed
// yet.
func (s *Service) Conversations(ctx context.Context, store *tree.Store, f tree.ConversationFilter, p tree.Paging) (page tree.Page[tree.Conversation], incomplete bool, err error) {
	defer fault.Wrap(&err, "search.Conversations(%+v)", p)
	if f.Query == "" {
		page, err = store.Conversations(ctx, f, p)
		return page, false, err
	}
	f.Query = inOneLine(f.Query)
	f.Chosen = true
	err = s.searching(ctx, store, f.Query, allWords, uuid.Nil, func(ctx context.Context, store *tree.Store, q query) error {
		x, err := s.open(ctx, store, Within{})
		if err != nil {
			return err
		}
		incomplete = x.missing
		titles, err := titled(ctx, store, q, x.behind, mostListed)
		if err != nil {
			return err
		}
		for _, c := range titles {
			f.Among = append(f.Among, c.ID)
		}
		among, all, err := x.conversations(ctx, q)
		if err != nil {
			return err
		}
		if f.Chosen = all && len(titles) < mostListed; f.Chosen {
			f.Among = append(f.Among, among...)
			return nil
		}
		page, err = s.listed(ctx, store, f, q, p)
		return err
	})
	if err == nil && f.Chosen {
		page, err = store.Conversations(ctx, f, p)
	}
	return page, incomplete, err
}

// conversations returns those with a message that matches; all is false where there
// are many, and it stopped.
func (x *extent) conversations(ctx context.Context, q query) (ids []uuid.UUID, all bool, err error) {
	x.once = true
	found, err := x.newest(ctx, q, candidate{at: math.MaxInt64}, mostListed)
	for _, c := range found {
		ids = append(ids, c.ConversationID)
	}
	return ids, len(found) < mostListed, err
}

// listed looks at the conversations of a list until a page is full.
func (s *Service) listed(ctx context.Context, store *tree.Store, f tree.ConversationFilter, q query, p tree.Paging) (page tree.Page[tree.Conversation], err error) {
	if p.Limit == 0 {
		p.Limit = tree.DefaultPage
	}
	bytes := 0
	for want := p.Limit; len(page.Data) < want && bytes <= tree.MaxPageBytes; {
		p.Limit = want - len(page.Data) // so that a full page ends where these rows do
		some, err := store.Conversations(ctx, f, p)
		if err != nil {
			return page, err
		}
		matching, err := s.among(ctx, store, q, some.Data)
		if err != nil {
			return page, err
		}
		for _, c := range some.Data {
			if matching[c.ID] || q.matches(sayingOf(c.Title)) {
				page.Data = append(page.Data, c)
				bytes += len(c.Metadata) + len(c.Settings)
			}
		}
		if p.Cursor, page.Next = some.Next, some.Next; some.Next == "" {
			break
		}
	}
	return page, nil
}

// among returns the conversations with a message that matches. It looks at a few
// messages of each together, and then at single conversations.
func (s *Service) among(ctx context.Context, store *tree.Store, q query, all []tree.Conversation) (map[uuid.UUID]bool, error) {
	const few = 4 // messages
	ids := make([]uuid.UUID, len(all))
	for i, c := range all {
		ids[i] = c.ID
	}
	matching, open := map[uuid.UUID]bool{}, map[uuid.UUID]bool{}
	behind, err := store.Feed().Pending(ctx, tree.SearchFollower, ids)
	if err != nil {
		return nil, err
	}
	for _, p := range behind {
		open[p.ConversationID] = true
	}
	x := &extent{store: store, make: newMaker()}
	rows, err := store.Index().ConversationChunks(ctx, 0, firstChunks, ids...)
	if err != nil {
		return nil, err
	}
	parts, err := x.parts(ctx, rows)
	if err != nil {
		return nil, err
	}
	chunks, found := map[uuid.UUID]int{}, map[uuid.UUID][]candidate{}
	for _, p := range parts {
		if chunks[p.conversationID]++; chunks[p.conversationID] == firstChunks {
			open[p.conversationID] = true
		}
		found[p.conversationID] = append(found[p.conversationID], p.candidates(q.mask(p))...)
	}
	var some []candidate
	for id, candidates := range found {
		open[id] = open[id] || len(candidates) > few || q.begins()
		some = append(some, candidates[:min(few, len(candidates))]...)
	}
	verified, err := x.verify(ctx, q, some)
	if err != nil {
		return nil, err
	}
	for _, c := range verified {
		matching[c.ConversationID] = true
	}
	for id := range open {
		if matching[id] {
			continue
		}
		x, err := s.open(ctx, store, Within{ConversationID: id})
		if err != nil {
			return nil, err
		}
		found, err := x.newest(ctx, q, candidate{at: math.MaxInt64}, 1)
		if err != nil {
			return nil, err
		}
		matching[id] = len(found) > 0
	}
	return matching, nil
}
