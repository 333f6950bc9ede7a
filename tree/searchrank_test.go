package tree_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// ranking gives the texts that a search by relevance finds, page by page.
func ranking(t *testing.T, s *tree.Store, query string, in uuid.UUID, limit int) (texts []string) {
	t.Helper()
	for p := (tree.Paging{Limit: limit}); ; {
		page, err := s.SearchRanked(t.Context(), query, in, p)
		if err != nil {
			t.Fatalf("%q: %v", query, err)
		}
		for _, hit := range page.Data {
			var body struct{ Content string }
			if err := json.Unmarshal(hit.Message.Body, &body); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, body.Content)
		}
		if p.Cursor = page.Next; p.Cursor == "" {
			return texts
		}
	}
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

// Beyond the newest messages, rare words find what they stand in; common ones
// only count.
func TestSearchRankedFindsRareWords(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	id, head := newConversation(t, s).ID, uuid.Nil
	var chain []tree.NewMessage
	chain = append(chain, user("the aqueduct of the mill"), user("the mill"))
	for i := range 1100 {
		chain = append(chain, user(fmt.Sprintf("the message %d", i)))
	}
	for from := 0; from < len(chain); from += tree.MaxChain {
		stored, _, err := s.AppendChain(t.Context(), id, head, chain[from:min(len(chain), from+tree.MaxChain)])
		if err != nil {
			t.Fatal(err)
		}
		head = stored[len(stored)-1].ID
	}
	if _, err := pool.Exec(t.Context(), "vacuum analyze nodes"); err != nil {
		t.Fatal(err)
	}
	for _, in := range []uuid.UUID{id, uuid.Nil} {
		got := ranking(t, s, "where is the aqueduct by the mill ", in, 300)
		if len(got) < 500 || len(got) > 1000 || got[0] != "the aqueduct of the mill" || got[1] != "the mill" {
			t.Errorf("%d found, first %q", len(got), got[:min(3, len(got))])
		}
		slices.Sort(got)
		if n := len(slices.Compact(slices.Clone(got))); n != len(got) {
			t.Errorf("%d of %d are different", n, len(got))
		}
		// Where the index isn't to be asked, the newest are ranked.
		if got := ranking(t, tree.New(pool, tree.WithMostFound(-1)), "the aqueduct ", in, 300); len(got) < 500 || slices.Contains(got, "the aqueduct of the mill") {
			t.Errorf("without the index %d are found", len(got))
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
	page, err := s.SearchRanked(t.Context(), "oak leaf", uuid.Nil, tree.Paging{Limit: 11})
	if err != nil {
		t.Fatal(err)
	}
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
		if page, err = s.SearchRanked(t.Context(), "oak leaf", uuid.Nil, tree.Paging{Limit: 11, Cursor: page.Next}); err != nil {
			t.Fatal(err)
		}
		got += len(page.Data)
	}
	if got != len(want) || len(seen) != len(want) {
		t.Errorf("%d hits of %d messages, want %d", got, len(seen), len(want))
	}
}

// A ranking takes its own cursors and no others, whatever is in them.
func TestSearchRankedCursors(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	id := newConversation(t, s).ID
	for range 5 {
		mustAppend(t, s, id, uuid.Nil, user("oak"))
	}
	ranked, err := s.SearchRanked(t.Context(), "oak", uuid.Nil, tree.Paging{Limit: 2})
	newest, err2 := s.Search(t.Context(), "oak", uuid.Nil, tree.Paging{Limit: 2})
	if err != nil || err2 != nil || ranked.Next == "" || newest.Next == "" {
		t.Fatal(err, err2, ranked.Next, newest.Next)
	}
	refused := func(what string, _ tree.Page[tree.Hit], err error) {
		t.Helper()
		var e *fault.Error
		if !errors.As(err, &e) || e.Code != "invalid_cursor" {
			t.Errorf("%s: %v, want invalid_cursor", what, err)
		}
	}
	p, err := s.SearchRanked(t.Context(), "oak", uuid.Nil, tree.Paging{Cursor: newest.Next})
	refused("the cursor of the newest", p, err)
	p, err = s.Search(t.Context(), "oak", uuid.Nil, tree.Paging{Cursor: ranked.Next})
	refused("the newest with the cursor of a ranking", p, err)
	p, err = s.SearchRanked(t.Context(), "oaks", uuid.Nil, tree.Paging{Cursor: ranked.Next})
	refused("another query", p, err)
	p, err = s.SearchRanked(t.Context(), "oak", id, tree.Paging{Cursor: ranked.Next})
	refused("another extent", p, err)
	p, err = s.ForTenant("other").SearchRanked(t.Context(), "oak", uuid.Nil, tree.Paging{Cursor: ranked.Next})
	refused("another tenant", p, err)
	raw, err := base64.RawURLEncoding.DecodeString(ranked.Next)
	if err != nil {
		t.Fatal(err)
	}
	for at := 8; at < 24; at++ {
		for _, b := range []byte{0, 0x7f, 0x80, 0xff} {
			other := slices.Clone(raw)
			other[at] = b
			_, err := s.SearchRanked(t.Context(), "oak", uuid.Nil, tree.Paging{Cursor: base64.RawURLEncoding.EncodeToString(other)})
			if err != nil && !errors.Is(err, fault.Invalid) {
				t.Errorf("byte %d as %x: %v", at, b, err)
			}
		}
	}
}

// Titles are found by their words, the last of which may be the beginning of one.
func TestSearchTitles(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	for _, title := range []string{"The hazel hedge", "Hazelnuts", "A wall", ""} {
		for _, tenant := range []string{"mine", "theirs"} {
			if _, _, err := s.ForTenant(tenant).CreateConversation(t.Context(), tree.NewConversation{Title: title + strings.Repeat(" of "+tenant, min(1, len(title)))}); err != nil {
				t.Fatal(err)
			}
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
