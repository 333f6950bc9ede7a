package search_test

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

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

// chatter stores messages with "living rods", some of ten words, and a number of their own.
func chatter(t testing.TB, s *tree.Store, messages int) uuid.UUID {
	t.Helper()
	id := conversation(t, s)
	chain(t, s, id, uuid.Nil, users(messages, func(i int) string { return fmt.Sprintf("living rods %d word%d of the hazel and the ash", i, i%10) })...)
	return id
}

// A hit above a fork opens the newest leaf below it, whichever branch is active.
func TestSearchOpensTheNewestLeaf(t *testing.T) {
	t.Parallel()
	s := search.NewStore()
	id := conversation(t, s)
	question := mustAppend(t, s, id, uuid.Nil, user("an oak"))
	answer := mustAppend(t, s, id, question.ID, user("an ash"))
	newest := mustAppend(t, s, id, question.ID, user("a hazel"))
	check.Must(s.UpdateConversation(t.Context(), id, tree.ConversationUpdate{HeadID: answer.ID}))(t)
	page := check.Must(search.New(0).Messages(t.Context(), s, `"oak"`, search.Within{}, tree.Paging{}))(t)
	check.That(t, len(page.Data) == 1 && page.Data[0].LeafID == newest.ID, "found %+v, want the leaf %s", page.Data, newest.ID)
}

func TestSearchRefuses(t *testing.T) {
	t.Parallel()
	s, find := search.NewStore(), search.New(0)
	mustAppend(t, s, conversation(t, s), uuid.Nil, user("an oak"))
	words := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "oak%d or ", i)
		}
		return b.String() + "oak"
	}
	for query, want := range map[string]string{
		words(search.MaxTerms):                  "too_many_terms",
		"oak -" + words(search.MaxTerms):        "too_many_terms",
		"-ash":                                  "no_term_to_find",
		"oak or -ash":                           "no_term_to_find",
		"the -the":                              "no_term_to_find",
		`"an oak" -"an oak" ash`:                "no_term_to_find",
		"oak or the -the":                       "",
		words(search.MaxTerms - 1):              "",
		strings.Repeat("oak or OAK or ", 60):    "",
		"oak -ash":                              "",
		strings.Repeat(`"oak" or `, 90) + `oak`: "",
	} {
		page, err := find.Messages(t.Context(), s, query, search.Within{}, tree.Paging{})
		_, _, err2 := find.Conversations(t.Context(), s, tree.ConversationFilter{Query: query}, tree.Paging{})
		check.That(t, code(err) == want && code(err2) == want && (want != "" || len(page.Data) == 1),
			"%.40q: %d hits, %v, %v; want %q", query, len(page.Data), err, err2, want)
	}
	for _, query := range []string{"!", "' '", "- -"} { // no words at all
		page, err := find.Messages(t.Context(), s, query, search.Within{}, tree.Paging{})
		check.That(t, err == nil && len(page.Data) == 0, "%q: %v, %v", query, page.Data, err)
	}
}

// A pasted address finds the messages that hold it, not those with some of its words. Line ends are blanks.
func TestSearchTakesPastedAddresses(t *testing.T) {
	t.Parallel()
	s, find := search.NewStore(), search.New(0)
	c := check.Must3(s.CreateConversation(t.Context(), tree.NewConversation{}))(t)
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
		for _, hit := range check.Must(find.Messages(t.Context(), s, query, search.Within{}, tree.Paging{}))(t).Data {
			got = append(got, says[hit.Message.ID])
		}
		slices.Sort(got)
		list, _, err := find.Conversations(t.Context(), s, tree.ConversationFilter{Query: query}, tree.Paging{})
		check.That(t, err == nil && slices.Equal(got, want) && len(list.Data) == min(1, len(want)),
			"%q: found %v in %d conversations, %v; want %v", query, got, len(list.Data), err, want)
	}
	const title = "about https://example.com: all of it"
	check.Must(s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{Title: new(title)}))(t)
	list, _, err := find.Conversations(t.Context(), s, tree.ConversationFilter{Query: "https://example.com: all"}, tree.Paging{})
	check.That(t, err == nil && len(list.Data) == 1, "by a title: %d conversations, %v", len(list.Data), err)
}

// Searches and questions find parts of names and paths, words without spaces, other letters, and emojis.
func TestPartsOfWordsAreFound(t *testing.T) {
	t.Parallel()
	s, find := search.NewStore(), search.New(0)
	id, head := conversation(t, s), uuid.Nil
	tests := []struct{ text, query string }{
		{"我们在那家咖啡馆见面", "咖啡馆"},
		{"明日の会議は三時です", "会議"},
		{"เราไปเชียงใหม่กันเถอะ", "เชียงใหม่"},
		{"See ratelimit/token_bucket.go for it.", "token_bucket.go"},
		{"GET /api/v2/users?page=2", "api/v2/users"},
		{"It listens on http://localhost:8080/healthz", "localhost:8080"},
		{"err := s.repo.SaveUser(ctx, u)", "SaveUser"},
		{"the order INV-00317 is open", "00317"},
		{"Wir wohnen in Zürich.", "zurich"},
		{"Le garçon arrive.", "garcon"},
		{"Die Goethestraße und die Straße daneben sind gesperrt.", "strasse"},
		{"Die Hauptstrasse ist offen.", "hauptstraße"},
		{"Новогодняя ёлка", "елка"},
		{"Congratulations 🎉🎉", "🎉"},
		{"Great ❤️", "❤"},
		{"Thanks 👍🏽", "👍"},
	}
	for _, test := range tests {
		head = mustAppend(t, s, id, head, user(test.text)).ID
	}
	for range 2 { // before they are indexed, and after
		for i, test := range tests {
			page := check.Must(find.Messages(t.Context(), s, test.query, search.Within{ConversationID: id}, tree.Paging{}))(t)
			check.That(t, len(page.Data) == 1 && page.Data[0].Message.Depth == i, "a search for %s finds %d messages", test.query, len(page.Data))
			answer := ask(t, find, s, id, head, search.Question{Query: test.query, Scope: search.ScopeBranch})
			check.That(t, len(answer.Hits) != 0 && answer.Hits[0].Message.Depth == i,
				"the question %s finds %d messages, or another one first", test.query, len(answer.Hits))
		}
		check.NoError(t, find.CatchUp(t.Context(), s))
	}
}

// A word is found in all that have it, newest first, by page, at any time, with segments or without.
func TestSearchFindsWordsOfAnyShare(t *testing.T) {
	t.Parallel()
	large, small, find := search.NewStore(), search.NewStore(), search.New(0, search.WithTimeout(time.Minute))
	shares := map[string]int{"every": 1, "second": 2, "seventh": 7, "hundredth": 100, "thousandth": 1000}
	r := rand.New(rand.NewPCG(3, 4))
	library := func(s *tree.Store, length int) uuid.UUID {
		id := conversation(t, s)
		var all []tree.NewMessage
		for i := range length {
			text := fmt.Sprint("message", i)
			for word, share := range shares {
				if r.IntN(share) == 0 {
					text += " " + word
				}
			}
			m := user(text)
			m.CreatedAt = time.Date(2026, 3, 1, 0, r.IntN(1000), 0, 0, time.UTC) // in disorder, some of one time
			all = append(all, m)
		}
		chain(t, s, id, uuid.Nil, all...)
		check.NoError(t, find.CatchUp(t.Context(), s))
		return id
	}
	short, long := library(large, 150), library(large, 1450)
	library(small, 90)
	n := check.Must(search.AddSegments(t.Context(), large, 8))(t)
	check.Need(t, n >= 3, "%d segments", n)
	for in, s := range map[uuid.UUID]*tree.Store{uuid.Nil: large, short: large, long: large, {1}: small} {
		if s == small {
			in = uuid.Nil
		}
		since := time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
		for i, query := range []string{`"every"`, `"second"`, `"seventh"`, `"hundredth"`, `"thousandth"`, `"absent"`, `"hundredth" "second"`, `"seventh" -second`, `"thousandth" or "hundredth" "seventh"`} {
			within := search.Within{ConversationID: in}
			if i%2 == 0 {
				within.Since, within.Before = since, since.Add(6*time.Hour)
			}
			rows := check.Must(search.Database().Query(t.Context(), `
				select n.id from nodes n join conversations c on c.id = n.conversation_id
				where c.tenant_id = $1 and ($2::uuid is null or c.id = $2) and to_tsvector('simple', n.body ->> 'content') @@ websearch_to_tsquery('simple', $3)
					and n.created_at >= $4 and ($5::timestamptz = $4 or n.created_at < $5)
				order by n.created_at desc, n.id desc`, s.TenantID(), uuid.NullUUID{UUID: in, Valid: in != uuid.Nil}, query, within.Since, within.Before))(t)
			want := check.Must(pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]))(t)
			var got []uuid.UUID
			for p := (tree.Paging{Limit: 800}); ; {
				page := check.Must(find.Messages(t.Context(), s, query, within, p))(t)
				for _, hit := range page.Data {
					got = append(got, hit.Message.ID)
				}
				if p.Cursor = page.Next; p.Cursor == "" {
					break
				}
				p.Limit = 40 + len(got)%200
			}
			check.That(t, slices.Equal(got, want), "%s in %+v: %d found, want %d, or in another order", query, within, len(got), len(want))
			if strings.Contains(query, " ") { // of which one word is enough for a ranking
				continue
			}
			ranked := check.Must(find.Ranked(t.Context(), s, query, within, tree.Paging{Limit: 800}))(t)
			check.That(t, len(ranked.Data) == min(len(want), 250) &&
				!slices.ContainsFunc(ranked.Data, func(h tree.Hit) bool { return !slices.Contains(want, h.Message.ID) }),
				"%s in %+v: %d are ranked of %d, or others", query, within, len(ranked.Data), len(want))
		}
	}
}

// The last word of a query is the beginning of words, unless it is quoted or a blank follows.
func TestSearchByBeginnings(t *testing.T) {
	t.Parallel()
	s, find := search.NewStore(), search.New(0)
	id, head := conversation(t, s), uuid.Nil
	say := func(texts ...string) {
		t.Helper()
		ids := chain(t, s, id, head, users(len(texts), func(i int) string { return texts[i] })...)
		head = ids[len(ids)-1]
	}
	say("a rate limiter", "the lim of it", "a limit", "it's Élancourt", "林木 here")
	finds := func(query string, want int) {
		t.Helper()
		for _, in := range []uuid.UUID{uuid.Nil, id} {
			page, err := find.Messages(t.Context(), s, query, search.Within{ConversationID: in}, tree.Paging{})
			check.That(t, err == nil && len(page.Data) == want, "%q in %s: %d found, %v, want %d", query, in, len(page.Data), err, want)
			for _, hit := range page.Data {
				check.That(t, strings.Contains(strings.ToLower(hit.Snippet), "lim") || !strings.Contains(query, "lim"),
					"%q: the snippet is %q", query, hit.Snippet)
			}
		}
		list, _, err := find.Conversations(t.Context(), s, tree.ConversationFilter{Query: query}, tree.Paging{})
		check.That(t, err == nil && len(list.Data) == min(want, 1), "%q: %d conversations, %v", query, len(list.Data), err)
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
	s, find := tree.New(pool), search.New(0, search.WithTimeout(50*time.Millisecond))
	id := conversation(t, s)
	tx := check.Must(pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.Background()) }()
	check.Must(tx.Exec(t.Context(), "lock table search_chunks in access exclusive mode"))(t)
	for _, err := range []error{
		second(find.Messages(t.Context(), s, "oak", search.Within{}, tree.Paging{})), second(find.Messages(t.Context(), s, "oak", search.Within{ConversationID: id}, tree.Paging{})),
		second(find.Ranked(t.Context(), s, "oak", search.Within{}, tree.Paging{})),
	} {
		check.That(t, code(err) == "search_timeout" && errors.Is(err, fault.Timeout), "%v, want search_timeout", err)
	}
}

// ranking gives the texts that a search by relevance finds, page by page.
func ranking(t *testing.T, s *tree.Store, query string, in uuid.UUID, limit int) (texts []string) {
	t.Helper()
	find := search.New(0)
	for p := (tree.Paging{Limit: limit}); ; {
		page := check.Must(find.Ranked(t.Context(), s, query, search.Within{ConversationID: in}, p))(t)
		for _, hit := range page.Data {
			texts = append(texts, chat.Read(hit.Message.Body).Text())
		}
		if p.Cursor = page.Next; p.Cursor == "" {
			return texts
		}
	}
}

// More words, rarer ones, or two together come first, function words alone last.
func TestSearchRanked(t *testing.T) {
	t.Parallel()
	s := search.NewStore()
	id := conversation(t, s)
	var head uuid.UUID
	for _, text := range []string{
		"hazel in the wood", "the hazel hedge", "the wood", "the wood again", "the stone wall of the old mill by the river with a hedge", "a hedge", "nothing of it", "hazelnut", "the hedge hazel",
	} {
		head = mustAppend(t, s, id, head, user(text)).ID
	}
	for query, want := range map[string][]string{
		"hazel hedge ":               {"the hazel hedge", "the hedge hazel", "hazel in the wood", "a hedge", "the stone wall of the old mill by the river with a hedge"},
		"where is the hazel ":        {"the hedge hazel", "the hazel hedge", "hazel in the wood", "the stone wall of the old mill by the river with a hedge", "the wood again", "the wood"},
		"hedge -hazel":               {"a hedge", "the stone wall of the old mill by the river with a hedge"},
		`mill "hazel hedge"`:         nil,
		`the "hazel hedge"`:          {"the hazel hedge"},
		`"hazel hedge"`:              {"the hazel hedge"},
		"mill or nothing":            {"nothing of it", "the stone wall of the old mill by the river with a hedge"},
		"unheardof":                  nil,
		"unheardof hazeln":           {"hazelnut"},
		"nothing about a hedge -old": {"nothing of it", "a hedge", "the hedge hazel", "the hazel hedge"},
	} {
		for _, in := range []uuid.UUID{id, uuid.Nil} {
			for _, limit := range []int{1, 2, 50} {
				got := ranking(t, s, query, in, limit)
				check.That(t, slices.Equal(got, want), "%q, %d at a time: %q, want %q", query, limit, got, want)
			}
		}
	}
}

// Beyond the newest messages, rare words find what they stand in.
func TestSearchRankedFindsRareWords(t *testing.T) {
	t.Parallel()
	s, find := search.NewStore(), search.New(0)
	id := conversation(t, s)
	old := mustAppend(t, s, id, uuid.Nil, user("the aqueduct of the mill"))
	chatter(t, s, 1100)
	check.Must(s.AppendChain(t.Context(), id, old.ID, slices.Repeat([]tree.NewMessage{user("the message")}, 600)))(t)
	check.NoError(t, find.CatchUp(t.Context(), s))
	check.Must(search.AddSegments(t.Context(), s, 4))(t)
	for _, in := range []uuid.UUID{id, uuid.Nil} {
		got := ranking(t, s, "where is the aqueduct by the mill ", in, 300)
		check.That(t, len(got) >= 250 && got[0] == "the aqueduct of the mill", "%d found, first %q", len(got), got[:min(3, len(got))])
	}
}

// What is said between two pages of a ranking comes in neither twice nor at all.
func TestSearchRankedPagesStay(t *testing.T) {
	t.Parallel()
	s, find := search.NewStore(), search.New(0)
	id := conversation(t, s)
	for i := range 30 {
		mustAppend(t, s, id, uuid.Nil, user(fmt.Sprintf("oak %d", i)+strings.Repeat(" leaf", i%7)))
	}
	want := ranking(t, s, "oak leaf", uuid.Nil, 100)
	page := check.Must(find.Ranked(t.Context(), s, "oak leaf", search.Within{}, tree.Paging{Limit: 11}))(t)
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
		page = check.Must(find.Ranked(t.Context(), s, "oak leaf", search.Within{}, tree.Paging{Limit: 11, Cursor: page.Next}))(t)
		got += len(page.Data)
	}
	check.That(t, got == len(want) && len(seen) == len(want), "%d hits of %d messages, want %d", got, len(seen), len(want))
}

// A ranking takes its own cursors and no others.
func TestSearchRankedCursors(t *testing.T) {
	t.Parallel()
	s, find := search.NewStore(), search.New(0)
	id := conversation(t, s)
	for range 5 {
		mustAppend(t, s, id, uuid.Nil, user("oak"))
	}
	ranked := tree.Paging{Cursor: check.Must(find.Ranked(t.Context(), s, "oak", search.Within{}, tree.Paging{Limit: 2}))(t).Next}
	newest := tree.Paging{Cursor: check.Must(find.Messages(t.Context(), s, "oak", search.Within{}, tree.Paging{Limit: 2}))(t).Next}
	for what, err := range map[string]error{
		"the cursor of the newest":                second(find.Ranked(t.Context(), s, "oak", search.Within{}, newest)),
		"the newest with the cursor of a ranking": second(find.Messages(t.Context(), s, "oak", search.Within{}, ranked)),
		"another query":                           second(find.Ranked(t.Context(), s, "oaks", search.Within{}, ranked)),
		"another extent":                          second(find.Ranked(t.Context(), s, "oak", search.Within{ConversationID: id}, ranked)),
		"another tenant":                          second(find.Ranked(t.Context(), s.ForTenant("other"), "oak", search.Within{}, ranked)),
	} {
		check.That(t, code(err) == "invalid_cursor", "%s: %v, want invalid_cursor", what, err)
	}
}

// Titles are found by words and their beginnings, before they are indexed and after.
func TestSearchTitles(t *testing.T) {
	t.Parallel()
	s, find := search.NewStore(), search.New(0)
	mine, theirs := s.ForTenant("mine"+s.TenantID()), s.ForTenant("theirs"+s.TenantID())
	for _, title := range []string{"The hazel hedge", "Hazelnuts", "A wall", "", "Größe des Gartens", "東京の天気", strings.Repeat("endless", 20)} {
		check.Must3(theirs.CreateConversation(t.Context(), tree.NewConversation{Title: title}))(t)
		before := check.Must3(mine.CreateConversation(t.Context(), tree.NewConversation{Title: "Formerly"}))(t)
		check.Must(mine.UpdateConversation(t.Context(), before.ID, tree.ConversationUpdate{Title: &title}))(t)
	}
	for _, indexed := range []string{"before", "after"} {
		for query, want := range map[string][]string{
			"hazel": {"Hazelnuts", "The hazel hedge"}, "hazel ": {"The hazel hedge"}, "hedge haz": {"The hazel hedge"}, "azel": nil, "formerly": nil,
			"the -nuts or wall": {"A wall", "The hazel hedge"}, "-hazel wall": {"A wall"}, `"hazel hedge"`: {"The hazel hedge"}, "grosse ": {"Größe des Gartens"},
			"京": {"東京の天気"}, "天気": {"東京の天気"}, strings.Repeat("endless", 20) + " ": {strings.Repeat("endless", 20)},
		} {
			list := check.Must(find.Titles(t.Context(), mine, query))(t)
			page := check.Must3(find.Conversations(t.Context(), mine, tree.ConversationFilter{Query: query}, tree.Paging{}))(t)
			slices.Sort(want)
			for what, found := range map[string][]tree.Conversation{"titles": list, "list": page.Data} {
				var got []string
				for _, c := range found {
					got = append(got, c.Title)
				}
				slices.Sort(got)
				check.That(t, slices.Equal(got, want), "%s %s: %q: %q, want %q", indexed, what, query, got, want)
			}
		}
		check.NoError(t, find.CatchUp(t.Context(), mine))
	}
}
