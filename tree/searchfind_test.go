package tree_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// shares are words, and how many messages there are to one that has the word.
var shares = map[string]int{"every": 1, "second": 2, "seventh": 7, "hundredth": 100, "thousandth": 1000}

// library stores conversations of so many messages, which have the words of
// shares, at times in disorder, some of them the same.
func library(t *testing.T, pool *pgxpool.Pool, s *tree.Store, lengths ...int) (ids []uuid.UUID) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	n := 0
	for _, length := range lengths {
		id, head := newConversation(t, s).ID, uuid.Nil
		ids = append(ids, id)
		for from := 0; from < length; from += tree.MaxChain {
			var chain []tree.NewMessage
			for range min(length-from, tree.MaxChain) {
				var text strings.Builder
				fmt.Fprintf(&text, "message%d", n)
				for word, share := range shares {
					if r.IntN(share) == 0 {
						text.WriteString(" " + word)
					}
				}
				n++
				chain = append(chain, user(text.String()))
			}
			stored, _, err := s.AppendChain(t.Context(), id, head, chain)
			if err != nil {
				t.Fatal(err)
			}
			head = stored[len(stored)-1].ID
		}
		// As UTC, because Citus takes no sum whose result depends on the session.
		if _, err := pool.Exec(t.Context(), "update nodes set created_at = ($2::timestamp + (hashtext(id::text) % 1000) * interval '1 minute') at time zone 'UTC' where conversation_id = $1",
			id, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(t.Context(), "vacuum analyze nodes"); err != nil {
		t.Fatal(err)
	}
	return ids
}

// Every word is found in all messages that have it, newest first, page by page,
// however common it is, in a large tenant and in a small one, in a long
// conversation and in a short one.
func TestSearchFindsWordsOfAnyShare(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	large, small := tree.New(pool).ForTenant("large"), tree.New(pool).ForTenant("small")
	ids := library(t, pool, large, 150, 700, 2150)
	library(t, pool, small, 90)
	for _, s := range []*tree.Store{large, small} {
		extents := []uuid.UUID{uuid.Nil}
		if s == large {
			extents = append(extents, ids...)
		}
		for _, in := range extents {
			for _, query := range []string{`"every"`, `"second"`, `"seventh"`, `"hundredth"`, `"thousandth"`, `"absent"`, `"hundredth" "second"`, `"seventh" -second`} {
				rows, err := pool.Query(t.Context(), `
					select n.id from nodes n join conversations c on c.id = n.conversation_id
					where c.tenant_id = $1 and ($2::uuid is null or c.id = $2) and to_tsvector('simple', n.body ->> 'content') @@ websearch_to_tsquery('simple', $3)
					order by n.created_at desc, n.id desc`, s.TenantID(), uuid.NullUUID{UUID: in, Valid: in != uuid.Nil}, query)
				if err != nil {
					t.Fatal(err)
				}
				want, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
				if err != nil {
					t.Fatal(err)
				}
				var got []uuid.UUID
				for p := (tree.Paging{Limit: 800}); ; {
					page, err := s.Search(t.Context(), query, in, p)
					if err != nil {
						t.Fatalf("%s: %v", query, err)
					}
					for _, hit := range page.Data {
						got = append(got, hit.Message.ID)
					}
					if p.Cursor = page.Next; p.Cursor == "" {
						break
					}
					p.Limit = 40 + len(got)%200
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, %s in %s: %d found, want %d, or in another order", s.TenantID(), query, in, len(got), len(want))
				}
			}
		}
	}
}

// A word that most messages have is found without a look into the index, in as
// many messages as the page has, however many there are.
func TestSearchForACommonWordSortsNothing(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	library(t, pool, s, 3000)
	shards, planned := dbtest.Shards(t), 0
	if shards > 1 { // a node plans each search anew, which reads the first pages of the index
		planned = 2 * shards
	}
	for query, most := range map[string]int{`"every"`: 60, `"second"`: 150, `"seventh"`: 500} {
		var pages, entries, looked int
		tx := dbtest.CountReads(t, pool)
		read := func() (index, recent int) {
			all := tx.Reads()
			return all["nodes_search"].Pages, all["nodes_recent"].Returned
		}
		if _, err := tree.New(tx).Search(t.Context(), query, uuid.Nil, tree.Paging{Limit: 10}); err != nil { // planning looks into each index
			t.Fatal(err)
		}
		pages, entries = read()
		page, err := tree.New(tx).Search(t.Context(), query, uuid.Nil, tree.Paging{Limit: 10})
		if err != nil || len(page.Data) != 10 {
			t.Errorf("%s: %d found, %v", query, len(page.Data), err)
		}
		after, looked := read()
		// Messages of one time are sorted by their ids, some tens at once.
		if after-pages > planned || looked-entries > most*shards {
			t.Errorf("%s: %d pages of the search index were read, and %d entries of the index by time, want %d and %d at most", query, after-pages, looked-entries, planned, most*shards)
		}
		if err := tx.Rollback(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// A list of conversations by a query is the same whether the index finds the
// messages, or they are read because too many would be found.
func TestConversationsByCommonWords(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	lengths := []int{1200}
	for range 12 {
		lengths = append(lengths, 5)
	}
	library(t, pool, s, lengths...)
	for _, query := range []string{"every", "second", "seventh", "hundredth", "seventh second", "absent"} {
		var got [2][]uuid.UUID
		for i, s := range []*tree.Store{s, tree.New(pool, tree.WithMostFound(0))} {
			for p := (tree.Paging{Limit: 3}); ; {
				page, err := s.Conversations(t.Context(), tree.ConversationFilter{Query: query}, p)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range page.Data {
					got[i] = append(got[i], c.ID)
				}
				if p.Cursor = page.Next; p.Cursor == "" {
					break
				}
			}
		}
		if !slices.Equal(got[0], got[1]) || query == "every" && len(got[0]) != len(lengths) {
			t.Errorf("%s: %d conversations by the index, %d by reading", query, len(got[0]), len(got[1]))
		}
	}
}

// The last word of a query is the beginning of words, where it isn't quoted and
// no blank follows.
func TestSearchByBeginnings(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	id, head := newConversation(t, s).ID, uuid.Nil
	say := func(texts ...string) {
		t.Helper()
		var chain []tree.NewMessage
		for _, text := range texts {
			chain = append(chain, user(text))
		}
		for len(chain) > 0 {
			n := min(len(chain), tree.MaxChain)
			stored, _, err := s.AppendChain(t.Context(), id, head, chain[:n])
			if err != nil {
				t.Fatal(err)
			}
			head, chain = stored[n-1].ID, chain[n:]
		}
	}
	say("a rate limiter", "the lim of it", "a limit", "it's Élancourt", "林木 here")
	finds := func(query string, want int) {
		t.Helper()
		for _, in := range []uuid.UUID{uuid.Nil, id} {
			page, err := s.Search(t.Context(), query, in, tree.Paging{})
			if err != nil || len(page.Data) != want {
				t.Errorf("%q in %s: %d found, %v, want %d", query, in, len(page.Data), err, want)
			}
			for _, hit := range page.Data {
				if !strings.Contains(strings.ToLower(hit.Snippet), "lim") && strings.Contains(query, "lim") {
					t.Errorf("%q: the snippet is %q", query, hit.Snippet)
				}
			}
		}
		list, err := s.Conversations(t.Context(), tree.ConversationFilter{Query: query}, tree.Paging{})
		if err != nil || len(list.Data) != min(want, 1) {
			t.Errorf("%q: %d conversations, %v", query, len(list.Data), err)
		}
	}
	for query, want := range map[string]int{
		"lim": 3, "rate lim": 1, "rat lim": 0, "lim ": 1, `"lim"`: 1, "lim rate": 0, "a limiter rate": 1, "LIM": 3, "absent or lim": 3, "rate -lim": 1, "élan": 1, "林": 1, "it's Élan": 1, `"a rate" lim`: 1,
		`rate "lim`: 0, "x-lim": 0, "limi": 2,
	} {
		finds(query, want)
	}
	// Beyond the newest, beginnings are found together with other words, and whole
	// words by themselves.
	say(slices.Repeat([]string{"on and on"}, 1100)...)
	for query, want := range map[string]int{"lim": 1, "rate lim": 1, "limi": 0, "a limi": 2, "rate limiter": 1} {
		finds(query, want)
	}
	say("one limit more")
	finds("lim", 2)
}
