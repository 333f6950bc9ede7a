package tree_test

import (
	"cmp"
	"context"
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
	"github.com/jackc/pgx/v5/pgxpool"
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

// effort is what Postgres read for a call.
type effort struct {
	rows       int // of nodes and conversations
	tablePages int // of them
	indexPages int // of all their indexes
	checked    int // rows that were looked up by their ids
}

// effortOf measures a call in a transaction that is undone. A connection counts
// on until the transaction ends.
func effortOf(t testing.TB, pool *pgxpool.Pool, tenant string, call func(*tree.Store) error) effort {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	read := func() (e effort) {
		err := tx.QueryRow(t.Context(), `
			select sum(pg_stat_get_xact_tuples_returned(c.oid) + pg_stat_get_xact_tuples_fetched(c.oid)) filter (where c.relkind = 'r'),
			       sum(pg_stat_get_xact_blocks_fetched(c.oid)) filter (where c.relkind = 'r'),
			       sum(pg_stat_get_xact_blocks_fetched(c.oid)) filter (where c.relkind = 'i'),
			       sum(pg_stat_get_xact_tuples_fetched(c.oid)) filter (where c.relname = 'nodes_pkey')
			from pg_class c left join pg_index x on x.indexrelid = c.oid
			where coalesce(x.indrelid, c.oid) in ('nodes'::regclass, 'conversations'::regclass)`).
			Scan(&e.rows, &e.tablePages, &e.indexPages, &e.checked)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	s := tree.New(tx).ForTenant(tenant)
	if err := call(s); err != nil { // what is read once, as of catalogs and of pages that were changed
		t.Fatal(err)
	}
	before := read()
	if err := call(s); err != nil {
		t.Fatal(err)
	}
	e := read()
	return effort{e.rows - before.rows, e.tablePages - before.tablePages, e.indexPages - before.indexPages, e.checked - before.checked}
}

// No search reads what another tenant wrote: no row, and no entry of an index,
// however much there is of it, and of the same words.
func TestSearchReadsNothingOfOthers(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	mine, theirs := tree.New(pool).ForTenant("mine"), tree.New(pool).ForTenant("theirs")
	id := chatter(t, mine, 100)
	chatter(t, theirs, 100)
	calls := map[string]struct {
		terms, found int
		call         func(*tree.Store) (int, error)
	}{}
	for query, found := range map[string]int{"living": 50, "living rods": 50, "42": 1, "word3 or word4": 20, "unheardof": 0, `"living rods 42"`: 1, "hazel -living": 0} {
		terms := len(strings.Fields(query))
		calls["a conversation: "+query] = struct {
			terms, found int
			call         func(*tree.Store) (int, error)
		}{terms, found, func(s *tree.Store) (int, error) {
			p, err := s.Search(t.Context(), query, id, tree.Paging{Limit: 50})
			return len(p.Data), err
		}}
		calls["a tenant: "+query] = struct {
			terms, found int
			call         func(*tree.Store) (int, error)
		}{terms, found, func(s *tree.Store) (int, error) {
			p, err := s.Search(t.Context(), query, uuid.Nil, tree.Paging{Limit: 50})
			return len(p.Data), err
		}}
		calls["conversations: "+query] = struct {
			terms, found int
			call         func(*tree.Store) (int, error)
		}{terms, min(found, 1), func(s *tree.Store) (int, error) {
			p, err := s.Conversations(t.Context(), tree.ConversationFilter{Query: query}, tree.Paging{Limit: 50})
			return len(p.Data), err
		}}
	}
	for query, found := range map[string]int{"living": 50, "42": 1, "unheardof": 0, "unheardof rods 42": 50, `living "unheardof"`: 0} {
		for where, in := range map[string]uuid.UUID{"a conversation": id, "a tenant": uuid.Nil} {
			calls[where+", ranked: "+query] = struct {
				terms, found int
				call         func(*tree.Store) (int, error)
			}{len(strings.Fields(query)), found, func(s *tree.Store) (int, error) {
				p, err := s.SearchRanked(t.Context(), query, in, tree.Paging{Limit: 50})
				return len(p.Data), err
			}}
		}
	}
	calls["titles"] = struct {
		terms, found int
		call         func(*tree.Store) (int, error)
	}{1, 0, func(s *tree.Store) (int, error) {
		list, err := s.SearchTitles(t.Context(), "living")
		return len(list), err
	}}
	measure := func() map[string]effort {
		if _, err := pool.Exec(t.Context(), "vacuum analyze nodes, conversations"); err != nil {
			t.Fatal(err)
		}
		out := map[string]effort{}
		for what, c := range calls {
			out[what] = effortOf(t, pool, "mine", func(s *tree.Store) error {
				n, err := c.call(s)
				if n != c.found {
					t.Errorf("%s: %d found, want %d", what, n, c.found)
				}
				return err
			})
		}
		return out
	}
	before := measure()
	for range 5 {
		chatter(t, theirs, 2000)
	}
	after := measure()
	for what, was := range before {
		is := after[what]
		// The plan may look a checked message's conversation up each time, or once.
		if is.rows != was.rows || is.checked != was.checked || is.tablePages > was.tablePages+was.checked {
			t.Errorf("%s: %+v beside 100 messages of another tenant, %+v beside 10,100", what, was, is)
		}
		// The search index, which is entered once for each word and length of hash,
		// becomes a page higher, and the list of a conversation's rows is on other pages.
		if most := was.indexPages + calls[what].terms*db.SearchLevels + 2; is.indexPages > most {
			t.Errorf("%s: %d pages of indexes beside 100 messages of another tenant, %d beside 10,100", what, was.indexPages, is.indexPages)
		}
		t.Logf("%s: %+v, %+v", what, was, is)
	}
}

// A page is as long as it is: of many messages that match, only those are
// looked at that are shown, and one that tells that there are more.
func TestSearchLooksAtAPage(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	id := chatter(t, s, 2000)
	for what, in := range map[string]uuid.UUID{"a conversation": id, "a tenant": uuid.Nil} {
		got := effortOf(t, pool, tree.DefaultTenant, func(s *tree.Store) error {
			_, err := s.Search(t.Context(), "living", in, tree.Paging{Limit: 10})
			return err
		})
		// Eleven are checked. Describing them walks a line of eleven, looks for each
		// one's siblings, and reads it.
		if got.checked > 60 {
			t.Errorf("%s: %+v for a page of 10", what, got)
		}
	}
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

// A search that can't go on ends by its own timeout or by a caller's shorter
// one. A caller's transaction goes on with the settings that it had.
func TestSearchEndsInTime(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	quick := tree.New(pool, tree.WithSearchTimeout(50*time.Millisecond))
	id := newConversation(t, quick).ID
	mustAppend(t, quick, id, uuid.Nil, user("an oak"))
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.Background()) }()
	if _, err := holder.Exec(t.Context(), "lock table nodes in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	ends := func(s *tree.Store) {
		t.Helper()
		_, err1 := s.Search(t.Context(), "oak", uuid.Nil, tree.Paging{})
		_, err2 := s.Search(t.Context(), "oak", id, tree.Paging{})
		_, err3 := s.Conversations(t.Context(), tree.ConversationFilter{Query: "oak"}, tree.Paging{})
		for _, err := range []error{err1, err2, err3} {
			var e *fault.Error
			if !errors.As(err, &e) || e.Code != "search_timeout" || !errors.Is(err, fault.Timeout) {
				t.Errorf("%v, want search_timeout", err)
			}
		}
	}
	ends(quick)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	settings := func() (all []string) {
		for _, name := range []string{"statement_timeout", "enable_seqscan", "work_mem"} {
			var value string
			if err := tx.QueryRow(t.Context(), "show "+name).Scan(&value); err != nil {
				t.Fatal(err)
			}
			all = append(all, value)
		}
		return all
	}
	if _, err := tx.Exec(t.Context(), "set local statement_timeout = '75ms'"); err != nil {
		t.Fatal(err)
	}
	was := settings()
	ends(tree.New(tx, tree.WithSearchTimeout(time.Hour)))
	if is := settings(); !slices.Equal(is, was) {
		t.Errorf("after searches that were given up, the settings are %v, were %v", is, was)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "set local statement_timeout = '75s'"); err != nil {
		t.Fatal(err)
	}
	was = settings()
	page, err := tree.New(tx).Search(t.Context(), "oak", uuid.Nil, tree.Paging{})
	if err != nil || len(page.Data) != 1 {
		t.Errorf("%v, %v", page.Data, err)
	}
	if is := settings(); !slices.Equal(is, was) {
		t.Errorf("after a search, the settings are %v, were %v", is, was)
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
