package tree_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// chatter stores a conversation whose messages all have the words "living" and
// "rods", some of ten, and a number of their own.
func chatter(t testing.TB, s *tree.Store, messages int) uuid.UUID {
	t.Helper()
	id, head := newConversation(t, s).ID, uuid.Nil
	for from := 0; from < messages; from += tree.MaxChain {
		var chain []tree.NewMessage
		for i := from; i < min(messages, from+tree.MaxChain); i++ {
			chain = append(chain, user(fmt.Sprintf("living rods %d word%d of the hazel and the ash", i, i%10)))
		}
		stored := must3(s.AppendChain(t.Context(), id, head, chain))(t)
		head = stored[len(stored)-1].ID
	}
	return id
}

func TestSearchRefuses(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	mustAppend(t, s, newConversation(t, s).ID, uuid.Nil, user("an oak"))
	words := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "oak%d or ", i)
		}
		return b.String() + "oak"
	}
	for query, code := range map[string]string{
		words(tree.MaxTerms):                    "too_many_terms",
		"oak -" + words(tree.MaxTerms):          "too_many_terms",
		"-ash":                                  "no_term_to_find",
		"oak or -ash":                           "no_term_to_find",
		words(tree.MaxTerms - 1):                "",
		strings.Repeat("oak or OAK or ", 60):    "",
		"oak -ash":                              "",
		strings.Repeat(`"oak" or `, 90) + `oak`: "",
	} {
		page, err := s.Search(t.Context(), query, uuid.Nil, tree.Paging{})
		_, err2 := s.Conversations(t.Context(), tree.ConversationFilter{Query: query}, tree.Paging{})
		if codeOf(err) != code || codeOf(err2) != code || code == "" && len(page.Data) != 1 {
			t.Errorf("%.40q: %d hits, %v, %v; want %q", query, len(page.Data), err, err2, code)
		}
	}
	for _, query := range []string{"!", "' '", "- -"} { // no words at all
		if page, err := s.Search(t.Context(), query, uuid.Nil, tree.Paging{}); err != nil || len(page.Data) > 0 {
			t.Errorf("%q: %v, %v", query, page.Data, err)
		}
	}
}

// What an append, a chain, a fork and an import store is found alike, and what is
// pruned or deleted is not.
func TestSearchFindsAllThatIsStored(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	m := mustAppend(t, s, c.ID, uuid.Nil, user("a coppice"))
	chain := must3(s.AppendChain(t.Context(), c.ID, m.ID, []tree.NewMessage{user("another coppice"), raw(`{"role":"user","content":[{"type":"text","text":"coppice in parts"}]}`)}))(t)
	fork := must3(s.Fork(t.Context(), c.ID, m.ID, tree.NewConversation{}))(t)
	must(s.Import(t.Context(), tree.Bundle{Conversation: tree.NewConversation{ID: uuid.New()}, Nodes: []tree.BundleNode{{ID: uuid.New(), Body: said(tree.RoleUser, "coppice from afar")}}}))(t)
	finds := func(want int) {
		t.Helper()
		if page, err := s.Search(t.Context(), "Coppice", uuid.Nil, tree.Paging{}); err != nil || len(page.Data) != want {
			t.Errorf("%d are found, %v; want %d", len(page.Data), err, want)
		}
	}
	finds(5)
	must(s.Prune(t.Context(), c.ID, chain[0].ID))(t)
	finds(3)
	noError(t, s.DeleteConversation(t.Context(), fork.ID))
	finds(2)
}

// An address that was pasted without quotes finds the messages that hold it, and
// no message that holds only some of its words. Line ends are blanks.
func TestSearchTakesPastedAddresses(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	says := map[uuid.UUID]string{}
	for name, text := range map[string]string{
		"address":  "See https://example.com/trees/oak?page=2#roots for the zebra.",
		"scheme":   "I said https and example.com and also trees and oak, page 2.",
		"time":     "We met at 10:30 there.",
		"no time":  "We met at 10 with 30 others.",
		"brackets": "https://en.wikipedia.org/wiki/Tree_(graph_theory)",
	} {
		says[mustAppend(t, s, c.ID, uuid.Nil, user(text)).ID] = name
	}
	for query, want := range map[string][]string{
		"zebra\r\n\thttps://example.com/trees/oak?page=2#roots": {"address"},
		"ash https://example.com/trees/oak?page=2#roots":        nil,
		"oak -https://example.com/trees/oak?page=2#roots":       {"scheme"},
		"10:30 or zebra:": {"address", "time"},
		":":               nil,
		"https://en.wikipedia.org/wiki/Tree_(graph_theory)": {"brackets"},
	} {
		var got []string
		for _, hit := range must(s.Search(t.Context(), query, uuid.Nil, tree.Paging{}))(t).Data {
			got = append(got, says[hit.Message.ID])
		}
		slices.Sort(got)
		list, err := s.Conversations(t.Context(), tree.ConversationFilter{Query: query}, tree.Paging{})
		if err != nil || !slices.Equal(got, want) || len(list.Data) != min(1, len(want)) {
			t.Errorf("%q: found %v in %d conversations, %v; want %v", query, got, len(list.Data), err, want)
		}
	}
	const title = "about https://example.com: all of it"
	must(s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{Title: new(title)}))(t)
	if list, err := s.Conversations(t.Context(), tree.ConversationFilter{Query: "https://example.com: all"}, tree.Paging{}); err != nil || len(list.Data) != 1 {
		t.Errorf("by a title: %d conversations, %v", len(list.Data), err)
	}
}

// Every word is found in all messages that have it, newest first, page by page,
// however common it is, in a large tenant and in a small one, in a long
// conversation and in a short one.
func TestSearchFindsWordsOfAnyShare(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	large, small := tree.New(pool).ForTenant("large"), tree.New(pool).ForTenant("small")
	shares := map[string]int{"every": 1, "second": 2, "seventh": 7, "hundredth": 100, "thousandth": 1000}
	r := rand.New(rand.NewPCG(3, 4))
	library := func(s *tree.Store, length int) uuid.UUID {
		id, head := newConversation(t, s).ID, uuid.Nil
		for length > 0 {
			var chain []tree.NewMessage
			for ; length > 0 && len(chain) < tree.MaxChain; length-- {
				text := fmt.Sprint("message", length)
				for word, share := range shares {
					if r.IntN(share) == 0 {
						text += " " + word
					}
				}
				chain = append(chain, user(text))
			}
			stored := must3(s.AppendChain(t.Context(), id, head, chain))(t)
			head = stored[len(stored)-1].ID
		}
		// In disorder, some of one time. As UTC, because Citus takes no sum whose result depends on the session.
		must(pool.Exec(t.Context(), "update nodes set created_at = ($2::timestamp + (hashtext(id::text) % 1000) * interval '1 minute') at time zone 'UTC' where conversation_id = $1",
			id, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)))(t)
		return id
	}
	short, long := library(large, 150), library(large, 2850)
	library(small, 90)
	must(pool.Exec(t.Context(), "vacuum analyze nodes"))(t)
	for in, s := range map[uuid.UUID]*tree.Store{uuid.Nil: large, short: large, long: large, {1}: small} {
		if s == small {
			in = uuid.Nil
		}
		for _, query := range []string{`"every"`, `"second"`, `"seventh"`, `"hundredth"`, `"thousandth"`, `"absent"`, `"hundredth" "second"`, `"seventh" -second`} {
			rows := must(pool.Query(t.Context(), `
				select n.id from nodes n join conversations c on c.id = n.conversation_id
				where c.tenant_id = $1 and ($2::uuid is null or c.id = $2) and to_tsvector('simple', n.body ->> 'content') @@ websearch_to_tsquery('simple', $3)
				order by n.created_at desc, n.id desc`, s.TenantID(), uuid.NullUUID{UUID: in, Valid: in != uuid.Nil}, query))(t)
			want := must(pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]))(t)
			var got []uuid.UUID
			for p := (tree.Paging{Limit: 800}); ; {
				page := must(s.Search(t.Context(), query, in, p))(t)
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
			stored := must3(s.AppendChain(t.Context(), id, head, chain[:n]))(t)
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

// A search that can't go on ends by its timeout.
func TestSearchEndsInTime(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool, tree.WithSearchTimeout(50*time.Millisecond))
	id := newConversation(t, s).ID
	tx := must(pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.Background()) }()
	must(tx.Exec(t.Context(), "lock table nodes in access exclusive mode"))(t)
	for _, err := range []error{
		second(s.Search(t.Context(), "oak", uuid.Nil, tree.Paging{})), second(s.Search(t.Context(), "oak", id, tree.Paging{})),
		second(s.Conversations(t.Context(), tree.ConversationFilter{Query: "oak"}, tree.Paging{})),
	} {
		if codeOf(err) != "search_timeout" || !errors.Is(err, fault.Timeout) {
			t.Errorf("%v, want search_timeout", err)
		}
	}
}
