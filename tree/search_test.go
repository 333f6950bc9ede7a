package tree_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db"
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
		stored, _, err := s.AppendChain(t.Context(), id, head, chain)
		if err != nil {
			t.Fatal(err)
		}
		head = stored[len(stored)-1].ID
	}
	return id
}

// What a search finds is what Postgres finds by reading every message of the
// tenant, whatever the texts and queries, newest first, page by page.
func TestSearchFindsWhatReadingFinds(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	word := rapid.SampledFrom([]string{"oak", "Oak", "OAK", "ash", "élan", "ÉLAN", "it's", `a\b`, `\`, `''`, "'", "foo-bar", "foo", "bar", "x@y.org", "http://a.org/b?c=d",
		"/usr/lib", "-1.5e3", "42", "林", "林木", "ΟΔΟΣ", "οδος", "straße", "İ", "a&b", "a|b", "!", "(", ":*", "<->", "<b>bold</b>", "t\u00a0n", "\u2028", "e\u0301", "K", strings.Repeat("long", 600)})
	text := rapid.Custom(func(t *rapid.T) string {
		words := rapid.SliceOfN(word, 1, 8).Draw(t, "words")
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			words = append(words, strings.ReplaceAll(rapid.String().Draw(t, "anything"), "\x00", ""))
		}
		return strings.Join(words, rapid.SampledFrom([]string{" ", "\n", ", ", ""}).Draw(t, "between"))
	})
	// A query, and what it stands for: a run with a colon in it is a phrase, and a
	// last part of letters and digits alone is the beginning of words.
	alone := regexp.MustCompile(`^[\p{L}\p{N}\p{M}]+$`)
	query := rapid.Custom(func(t *rapid.T) [3]string {
		var parts, meant []string
		last := ""
		phrase := func(word string) string {
			if strings.Contains(word, ":") {
				return `"` + word + `"`
			}
			return word
		}
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			part := word.Draw(t, "word")
			means := phrase(part)
			last = part
			switch rapid.IntRange(0, 6).Draw(t, "kind") {
			case 0:
				part = `"` + part + " " + word.Draw(t, "next") + `"`
				means, last = part, ""
			case 1:
				part, means, last = "-"+part, "-"+means, ""
			case 2:
				other := word.Draw(t, "other")
				part, means = part+" or "+other, means+" or "+phrase(other)
				last = other
			}
			if !alone.MatchString(last) {
				last = ""
			}
			parts, meant = append(parts, part), append(meant, means)
		}
		if last != "" { // in its place stands a word that nobody says
			meant[len(meant)-1] = strings.TrimSuffix(meant[len(meant)-1], last) + "lastone"
		}
		sought := strings.Join(parts, " ")
		if rapid.IntRange(0, 4).Draw(t, "blank") == 0 {
			return [3]string{sought + " ", strings.ReplaceAll(strings.Join(meant, " "), "lastone", last), ""}
		}
		return [3]string{sought, strings.Join(meant, " "), last}
	})
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		tenants := []string{fmt.Sprint("a", round), fmt.Sprint("b", round)}
		var ids []uuid.UUID
		for _, tenant := range tenants {
			s := tree.New(pool).ForTenant(tenant)
			for range 2 {
				id := newConversation(t, s).ID
				ids = append(ids, id)
				var chain []tree.NewMessage
				for _, said := range rapid.SliceOfN(text, 1, 12).Draw(rt, "texts") {
					if strings.TrimSpace(said) != "" {
						chain = append(chain, user(said))
					}
				}
				if len(chain) == 0 {
					continue
				}
				if _, _, err := s.AppendChain(t.Context(), id, uuid.Nil, chain[:len(chain)/2+1]); err != nil {
					rt.Fatal(err)
				}
				for _, m := range chain[len(chain)/2+1:] {
					mustAppend(t, s, id, uuid.Nil, m)
				}
			}
		}
		for range 4 {
			tenant := rapid.IntRange(0, 1).Draw(rt, "tenant")
			s := tree.New(pool).ForTenant(tenants[tenant])
			in := rapid.SampledFrom([]uuid.UUID{uuid.Nil, ids[2*tenant]}).Draw(rt, "in")
			drawn := query.Draw(rt, "query")
			sought, meant, last := drawn[0], drawn[1], drawn[2]
			if len(sought) > 1000 || strings.TrimSpace(sought) == "" {
				continue
			}
			rows, err := pool.Query(t.Context(), `
				select n.id from nodes n join conversations c on c.id = n.conversation_id
				where c.tenant_id = $1 and n.kind = 'message' and ($2::uuid is null or c.id = $2)
				  and to_tsvector('simple', n.body ->> 'content') @@ ts_rewrite(websearch_to_tsquery('simple', $3), 'lastone', (websearch_to_tsquery('simple', $4)::text || ':*')::tsquery)
				order by n.created_at desc, n.id desc`, tenants[tenant], uuid.NullUUID{UUID: in, Valid: in != uuid.Nil}, meant, cmp.Or(last, "lastone"))
			if err != nil {
				rt.Fatal(err)
			}
			want, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			if err != nil {
				rt.Fatal(err)
			}
			var got []uuid.UUID
			in2 := map[uuid.UUID]bool{}
			for p := (tree.Paging{Limit: 3}); ; {
				page, err := s.Search(t.Context(), sought, in, p)
				var refused *fault.Error
				if errors.As(err, &refused) && refused.Code == "no_term_to_find" {
					return
				}
				if err != nil {
					rt.Fatalf("%q: %v", sought, err)
				}
				for _, hit := range page.Data {
					got = append(got, hit.Message.ID)
					in2[hit.Message.ConversationID] = true
					if !utf8.ValidString(hit.Snippet) || len(hit.Snippet) > 400 {
						rt.Errorf("%q: a snippet of %d bytes: %q", sought, len(hit.Snippet), hit.Snippet)
					}
				}
				if p.Cursor = page.Next; p.Cursor == "" {
					break
				}
			}
			if !slices.Equal(got, want) {
				rt.Fatalf("%q found %v, want %v", sought, got, want)
			}
			if in == uuid.Nil {
				page, err := s.Conversations(t.Context(), tree.ConversationFilter{Query: sought}, tree.Paging{Limit: tree.MaxPage})
				if err != nil || len(page.Data) != len(in2) {
					rt.Fatalf("%q: %d conversations, %v, want %d", sought, len(page.Data), err, len(in2))
				}
			}
		}
	})
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
		for _, err := range []error{err, err2} {
			var refused *fault.Error
			if code != "" && (!errors.As(err, &refused) || refused.Code != code || refused.Field != "query" || !errors.Is(err, fault.Invalid)) {
				t.Errorf("%.40q: %v, want %s", query, err, code)
			}
		}
		if code == "" && (err != nil || err2 != nil || len(page.Data) != 1) {
			t.Errorf("%.40q: %d hits, %v, %v", query, len(page.Data), err, err2)
		}
	}
	for _, query := range []string{"!", "' '", "- -"} { // no words at all
		if page, err := s.Search(t.Context(), query, uuid.Nil, tree.Paging{}); err != nil || len(page.Data) > 0 {
			t.Errorf("%q: %v, %v", query, page.Data, err)
		}
	}
}

// Texts of as many words as 256 KiB can have are stored and found. A URL of
// seven bytes is three words.
func TestSearchTakesManyWords(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	var urls, words strings.Builder
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	for i := 0; urls.Len() < 256<<10-8; i++ {
		fmt.Fprintf(&urls, "%c.%c%c/%c ", letters[i%26], letters[i/26%26], letters[i/676%26], letters[i/17576%36])
	}
	for i := 0; words.Len() < 256<<10-4; i++ {
		fmt.Fprintf(&words, "%c%c%c ", letters[i%26], letters[i/26%36], letters[i/936%36])
	}
	id := newConversation(t, s).ID
	for _, text := range []string{urls.String(), words.String()} {
		mustAppend(t, s, id, uuid.Nil, user(text))
	}
	for _, query := range []string{"a.aa/a", "zzz"} {
		if page, err := s.Search(t.Context(), query, uuid.Nil, tree.Paging{}); err != nil || len(page.Data) != 1 {
			t.Errorf("%q: %d hits, %v", query, len(page.Data), err)
		}
	}
}

// A fork, a chain, an import and an append are found alike, by whoever stored
// them, and so is what a tenant of another size stored.
func TestSearchFindsAllThatIsStored(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	c := newConversation(t, s)
	m := mustAppend(t, s, c.ID, uuid.Nil, user("a coppice"))
	if _, _, err := s.AppendChain(t.Context(), c.ID, m.ID, []tree.NewMessage{user("another coppice"), raw(`{"role":"user","content":[{"type":"text","text":"coppice in parts"}]}`)}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Fork(t.Context(), c.ID, m.ID, tree.NewConversation{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(t.Context(), tree.Bundle{Conversation: tree.NewConversation{ID: uuid.New()},
		Nodes: []tree.BundleNode{{ID: uuid.New(), Body: json.RawMessage(`{"role":"user","content":"coppice from afar"}`), CreatedAt: time.Now()}}}); err != nil {
		t.Fatal(err)
	}
	for level := range db.SearchLevels {
		if _, err := pool.Exec(t.Context(), "update nodes set search_key = left(search_key, 8) || chr(97 + ($1 + depth) % $2)", level, db.SearchLevels); err != nil {
			t.Fatal(err)
		}
		page, err := tree.New(pool).Search(t.Context(), "Coppice", uuid.Nil, tree.Paging{})
		if err != nil || len(page.Data) != 5 {
			t.Errorf("with hashes of length %d, %d are found, %v", level, len(page.Data), err)
		}
	}
}

// A query that was pasted with its line ends is one of the same words.
func TestSearchTakesPastedLines(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	want := mustAppend(t, s, c.ID, uuid.Nil, user("A zebra has a number."))
	page, err := s.Search(t.Context(), "zebra\r\n\tnumber", uuid.Nil, tree.Paging{})
	if err != nil || len(page.Data) != 1 || page.Data[0].Message.ID != want.ID {
		t.Errorf("found %+v, %v", page.Data, err)
	}
}

// An address that was pasted without quotes finds the messages that hold it, and
// no message that holds only some of its words.
func TestSearchTakesPastedAddresses(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	says := map[string]uuid.UUID{}
	for name, text := range map[string]string{
		"address":  "See https://example.com/trees/oak?page=2#roots for the zebra.",
		"scheme":   "I said https and example.com and also trees and oak, page 2.",
		"local":    "It runs at http://localhost:8080/v1/search today.",
		"path":     `The file C:\notes\oak.txt is gone.`,
		"time":     "We met at 10:30 there.",
		"no time":  "We met at 10 with 30 others.",
		"brackets": "https://en.wikipedia.org/wiki/Tree_(graph_theory)",
	} {
		says[name] = mustAppend(t, s, c.ID, uuid.Nil, user(text)).ID
	}
	for query, want := range map[string][]string{
		"https://example.com/trees/oak?page=2#roots":                   {"address"},
		"zebra https://example.com/trees/oak?page=2#roots":             {"address"},
		"ash https://example.com/trees/oak?page=2#roots":               nil,
		`"https://example.com/trees/oak?page=2#roots"`:                 {"address"},
		`"the zebra" https://example.com/trees/oak?page=2#roots "see"`: {"address"},
		"oak -https://example.com/trees/oak?page=2#roots":              {"scheme"},
		"http://localhost:8080/v1/search or 10:30":                     {"local", "time"},
		`C:\notes\oak.txt`: {"path"},
		"10:30":            {"time"},
		"zebra:":           {"address"},
		":":                nil,
		`zebra:"see"`:      {"address"},
		"https://en.wikipedia.org/wiki/Tree_(graph_theory)": {"brackets"},
	} {
		var got []string
		page, err := s.Search(t.Context(), query, uuid.Nil, tree.Paging{})
		for _, hit := range page.Data {
			for name, id := range says {
				if id == hit.Message.ID {
					got = append(got, name)
				}
			}
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: found %v, %v; want %v", query, got, err, want)
		}
		list, err := s.Conversations(t.Context(), tree.ConversationFilter{Query: query}, tree.Paging{})
		if err != nil || len(list.Data) != min(1, len(want)) {
			t.Errorf("%s: %d conversations, %v", query, len(list.Data), err)
		}
	}
	const title = "about https://example.com: all of it"
	if _, err := s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{Title: new(title)}); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Conversations(t.Context(), tree.ConversationFilter{Query: "https://example.com: all"}, tree.Paging{}); err != nil || len(list.Data) != 1 {
		t.Errorf("by a title: %d conversations, %v", len(list.Data), err)
	}
}
