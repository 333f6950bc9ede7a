package tree_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// ranking gives the texts that a search by relevance finds, page by page.
func ranking(t *testing.T, s *tree.Store, query string, in uuid.UUID, limit int) (texts []string) {
	t.Helper()
	for _, hit := range paged(t, limit, func(p tree.Paging) (tree.Page[tree.Hit], error) { return s.SearchRanked(t.Context(), query, in, p) }) {
		texts = append(texts, chat.Read(hit.Message.Body).Text())
	}
	return texts
}

// What has more of the words, rarer ones, and fewer others beside them, stands
// first.
func TestSearchRanked(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	id := newConversation(t, s).ID
	var head uuid.UUID
	for _, text := range []string{
		"hazel in the wood", "the hazel hedge", "the wood", "the wood again", "the stone wall of the old mill by the river with a hedge", "a hedge", "nothing of it", "hazelnut", "the hedge hazel",
	} {
		head = mustAppend(t, s, id, head, user(text)).ID
	}
	for query, want := range map[string][]string{
		"hazel hedge ":               {"the hedge hazel", "the hazel hedge", "hazel in the wood", "a hedge", "the stone wall of the old mill by the river with a hedge"},
		"where is the hazel ":        {"the hedge hazel", "the hazel hedge", "hazel in the wood", "the wood", "the wood again", "the stone wall of the old mill by the river with a hedge"},
		"hedge -hazel":               {"a hedge", "the stone wall of the old mill by the river with a hedge"},
		`mill "hazel hedge"`:         nil,
		`the "hazel hedge"`:          {"the hazel hedge"},
		`"hazel hedge"`:              {"the hazel hedge"},
		"mill or nothing":            {"nothing of it", "the stone wall of the old mill by the river with a hedge"},
		"unheardof":                  nil,
		"unheardof hazeln":           {"hazelnut"},
		"nothing about a hedge -old": {"a hedge", "nothing of it", "the hedge hazel", "the hazel hedge"},
	} {
		for _, in := range []uuid.UUID{id, uuid.Nil} {
			for _, limit := range []int{1, 2, 50} {
				if got := ranking(t, s, query, in, limit); !slices.Equal(got, want) {
					t.Errorf("%q, %d at a time: %q, want %q", query, limit, got, want)
				}
			}
		}
	}
}

// Beyond the newest messages, rare words find what they stand in.
func TestSearchRankedFindsRareWords(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	id := newConversation(t, s).ID
	old := mustAppend(t, s, id, uuid.Nil, user("the aqueduct of the mill"))
	chatter(t, s, 1100)
	must3(s.AppendChain(t.Context(), id, old.ID, slices.Repeat([]tree.NewMessage{user("the message")}, 600)))(t)
	must(pool.Exec(t.Context(), "vacuum analyze nodes"))(t)
	for _, in := range []uuid.UUID{id, uuid.Nil} {
		if got := ranking(t, s, "where is the aqueduct by the mill ", in, 300); len(got) < 400 || got[0] != "the aqueduct of the mill" {
			t.Errorf("%d found, first %q", len(got), got[:min(3, len(got))])
		}
	}
}

// What is said between two pages of a ranking comes in neither twice nor at all.
func TestSearchRankedPagesStay(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	id := newConversation(t, s).ID
	for i := range 30 {
		mustAppend(t, s, id, uuid.Nil, user(fmt.Sprintf("oak %d", i)+strings.Repeat(" leaf", i%7)))
	}
	want := ranking(t, s, "oak leaf", uuid.Nil, 100)
	page := must(s.SearchRanked(t.Context(), "oak leaf", uuid.Nil, tree.Paging{Limit: 11}))(t)
	got := len(page.Data)
	seen := map[uuid.UUID]bool{}
	for {
		for _, hit := range page.Data {
			seen[hit.Message.ID] = true
		}
		if page.Next == "" {
			break
		}
		mustAppend(t, s, id, uuid.Nil, user("oak leaf leaf leaf"))
		page = must(s.SearchRanked(t.Context(), "oak leaf", uuid.Nil, tree.Paging{Limit: 11, Cursor: page.Next}))(t)
		got += len(page.Data)
	}
	if got != len(want) || len(seen) != len(want) {
		t.Errorf("%d hits of %d messages, want %d", got, len(seen), len(want))
	}
}

// A ranking takes its own cursors and no others.
func TestSearchRankedCursors(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	id := newConversation(t, s).ID
	for range 5 {
		mustAppend(t, s, id, uuid.Nil, user("oak"))
	}
	ranked := tree.Paging{Cursor: must(s.SearchRanked(t.Context(), "oak", uuid.Nil, tree.Paging{Limit: 2}))(t).Next}
	newest := tree.Paging{Cursor: must(s.Search(t.Context(), "oak", uuid.Nil, tree.Paging{Limit: 2}))(t).Next}
	for what, err := range map[string]error{
		"the cursor of the newest":                second(s.SearchRanked(t.Context(), "oak", uuid.Nil, newest)),
		"the newest with the cursor of a ranking": second(s.Search(t.Context(), "oak", uuid.Nil, ranked)),
		"another query":                           second(s.SearchRanked(t.Context(), "oaks", uuid.Nil, ranked)),
		"another extent":                          second(s.SearchRanked(t.Context(), "oak", id, ranked)),
		"another tenant":                          second(s.ForTenant("other").SearchRanked(t.Context(), "oak", uuid.Nil, ranked)),
	} {
		if codeOf(err) != "invalid_cursor" {
			t.Errorf("%s: %v, want invalid_cursor", what, err)
		}
	}
}

// Titles are found by their words, the last of which may be the beginning of one.
func TestSearchTitles(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	for _, title := range []string{"The hazel hedge", "Hazelnuts", "A wall", ""} {
		for _, tenant := range []string{"mine", "theirs"} {
			must3(s.ForTenant(tenant).CreateConversation(t.Context(), tree.NewConversation{Title: title + strings.Repeat(" of "+tenant, min(1, len(title)))}))(t)
		}
	}
	for query, want := range map[string][]string{
		"hazel": {"Hazelnuts of mine", "The hazel hedge of mine"}, "hazel ": {"The hazel hedge of mine"}, "hedge haz": {"The hazel hedge of mine"},
		"of -hazel": {"Hazelnuts of mine", "A wall of mine"}, "theirs": nil, `"hazel hedge"`: {"The hazel hedge of mine"},
	} {
		list, err := s.ForTenant("mine").SearchTitles(t.Context(), query)
		var got []string
		for _, c := range list {
			got = append(got, c.Title)
		}
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", query, got, err, want)
		}
	}
}

// candidates gives the ids of a question's candidates.
func candidates(t testing.TB, s *tree.Store, words ...string) (ids []uuid.UUID) {
	t.Helper()
	found := must(s.Candidates(t.Context(), words))(t)
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
			must3(s.AppendChain(t.Context(), id, uuid.Nil, chain))(t)
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
