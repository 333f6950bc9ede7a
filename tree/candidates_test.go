package tree_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// candidates gives the ids of a question's candidates.
func candidates(t testing.TB, s *tree.Store, words ...string) (ids []uuid.UUID) {
	t.Helper()
	found, err := s.Candidates(t.Context(), words)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found {
		ids = append(ids, c.ConversationID)
	}
	return ids
}

// A rare word counts more than a common one, two words more than one, and no
// conversation of another tenant counts.
func TestCandidates(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool).ForTenant("mine")
	said := func(s *tree.Store, texts ...string) uuid.UUID {
		id := newConversation(t, s).ID
		var chain []tree.NewMessage
		for _, text := range texts {
			chain = append(chain, user(text))
		}
		if len(chain) > 0 {
			if _, _, err := s.AppendChain(t.Context(), id, uuid.Nil, chain); err != nil {
				t.Fatal(err)
			}
		}
		return id
	}
	common := said(s, "The garden in spring.", "The garden in autumn.", "The garden, again.")
	rare := said(s, "A violin in the attic.")
	both := said(s, "A violin in the garden.")
	none := said(s, "Nothing of it.")
	said(s)
	said(s.ForTenant("theirs"), "A violin in the garden, and the attic.")

	if got, want := candidates(t, s, "violin", "garden"), []uuid.UUID{both, rare, common}; !slices.Equal(got, want) {
		t.Errorf("%v, want the one that has both words, then the rare one, then the common one: %v", got, want)
	}
	if got := candidates(t, s, "attic"); !slices.Equal(got, []uuid.UUID{rare}) {
		t.Errorf("attic: %v", got)
	}
	// Nothing has the words, or there are none: those in which something was said last.
	for _, words := range [][]string{{"unheardof"}, nil} {
		if got, want := candidates(t, s, words...), []uuid.UUID{none, both, rare, common}; !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", words, got, want)
		}
	}
	if found, err := s.Candidates(t.Context(), []string{"garden"}); err != nil || found[0].Messages != 3 {
		t.Errorf("%+v, %v", found, err)
	}
	many := slices.Repeat([]string{"garden"}, tree.MaxTerms+1)
	if _, err := s.Candidates(t.Context(), many); !errors.Is(err, fault.Invalid) {
		t.Errorf("%d words: %v", len(many), err)
	}
}

// Looking for candidates reads nothing of another tenant, however much of the
// same words that one has.
func TestCandidatesReadNothingOfOthers(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	mine, theirs := tree.New(pool).ForTenant("mine"), tree.New(pool).ForTenant("theirs")
	id := chatter(t, mine, 100)
	chatter(t, theirs, 100)
	words := []string{"living", "rods", "word3", "unheardof"}
	measure := func() effort {
		if _, err := pool.Exec(t.Context(), "vacuum analyze nodes, conversations"); err != nil {
			t.Fatal(err)
		}
		return effortOf(t, pool, "mine", func(s *tree.Store) error {
			if got := candidates(t, s, words...); !slices.Equal(got, []uuid.UUID{id}) {
				t.Errorf("%v", got)
			}
			return nil
		})
	}
	was := measure()
	for range 3 {
		chatter(t, theirs, 2000)
	}
	is := measure()
	// Each shard's search index becomes a page higher for each of its entries.
	if is.rows != was.rows || is.tablePages > was.tablePages+was.checked || is.indexPages > was.indexPages+(len(words)*db.SearchLevels+2)*dbtest.Shards(t) {
		t.Errorf("%+v beside 100 messages of another tenant, %+v beside 6,100", was, is)
	}
}

// A word that very many messages have costs those that are looked at: 500, or 500 of
// each shard that has any.
func TestCommonWordIsBounded(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	for range 2 {
		chatter(t, s, 4000)
	}
	if _, err := pool.Exec(t.Context(), "vacuum analyze nodes, conversations"); err != nil {
		t.Fatal(err)
	}
	got := effortOf(t, pool, tree.DefaultTenant, func(s *tree.Store) error {
		candidates(t, s, "living")
		return nil
	})
	if got.rows > 500*min(2, dbtest.Shards(t))+100 {
		t.Errorf("%+v for a word of 8,000 messages", got)
	}
}
