package search_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

// Messages that came one by one end in few chunks, and those of a long conversation in full ones.
func TestFollowJoinsChunks(t *testing.T) {
	t.Parallel()
	s, find := search.NewStore(), search.New(0)
	sizes := func(id uuid.UUID) string {
		check.NoError(t, find.CatchUp(t.Context(), s))
		var sizes []string
		for _, c := range check.Must(s.Index().ConversationChunks(t.Context(), 0, 1000, id))(t) {
			sizes = append([]string{fmt.Sprint(len(c.Messages))}, sizes...)
		}
		return strings.Join(sizes, " ")
	}
	id := conversation(t, s)
	for i := range 71 {
		mustAppend(t, s, id, uuid.Nil, user(fmt.Sprint(i)))
		got := sizes(id)
		check.That(t, i != 62 || got == "32 16 8 4 2 1", "63 messages are in chunks of %s", got)
	}
	got := sizes(id)
	check.That(t, got == "64 4 2 1", "71 messages are in chunks of %s", got)
	long := conversation(t, s)
	chain(t, s, long, uuid.Nil, users(4200, func(i int) string { return fmt.Sprint(i) })...)
	got = sizes(long)
	check.That(t, got == strings.Repeat("64 ", 65)+"40", "4,200 messages are in chunks of %s", got)
}

// A message that is pruned while the follower reads it leaves no word, and what came beside it is indexed.
func TestPruneBesideFollow(t *testing.T) {
	t.Parallel()
	s := search.NewStore()
	id := conversation(t, s)
	kept := mustAppend(t, s, id, uuid.Nil, user("the hazel"))
	pruned := mustAppend(t, s, id, uuid.Nil, user("the violin"))
	done := false
	racing := dbtest.AfterQuery(t, search.Database(), "ListTexts", func() {
		if !done {
			done = true
			check.Must(s.Prune(context.Background(), id, pruned.ID))(t)
		}
	})
	find := search.New(0)
	behind := check.Must(s.Feed().Unfollowed(t.Context(), tree.SearchFollower, nil, kept.CreatedAt.Add(-1e9), 10))(t)
	check.NoError(t, find.Follow(t.Context(), tree.New(racing), behind))
	chunks := check.Must(s.Index().ConversationChunks(t.Context(), 0, 10, id))(t)
	check.That(t, len(chunks) == 0 && done, "%d chunks beside a prune", len(chunks))
	check.NoError(t, find.CatchUp(t.Context(), s))
	for query, want := range map[string]int{"hazel": 1, "violin": 0} {
		page := check.Must(find.Messages(t.Context(), s, query, search.Within{}, tree.Paging{}))(t)
		check.That(t, len(page.Data) == want, "%d hits of %s", len(page.Data), query)
	}
	chunks = check.Must(s.Index().ConversationChunks(t.Context(), 0, 10, id))(t)
	check.That(t, len(chunks) == 1 && len(chunks[0].Messages) == 1, "%+v", chunks)
}

// What isn't indexed yet is found as far as a search reads, and the search says where it didn't.
func TestSearchTellsWhatIsNotIndexed(t *testing.T) {
	t.Parallel()
	s, find := search.NewStore(), search.New(0)
	for _, words := range []string{"old", "new"} {
		chain(t, s, conversation(t, s), uuid.Nil, users(1500, func(i int) string { return fmt.Sprint(words, " ", i) })...)
	}
	for _, query := range []string{"new 1499", "old 1499"} {
		page := check.Must(find.Messages(t.Context(), s, query+" ", search.Within{}, tree.Paging{}))(t)
		check.That(t, page.Incomplete && len(page.Data) == 1, "%s: %d hits, incomplete %t", query, len(page.Data), page.Incomplete)
	}
	page := check.Must(find.Messages(t.Context(), s, "old 1 ", search.Within{}, tree.Paging{}))(t)
	check.That(t, page.Incomplete && len(page.Data) == 0, "%d hits, incomplete %t", len(page.Data), page.Incomplete)
	check.NoError(t, find.CatchUp(t.Context(), s))
	page = check.Must(find.Messages(t.Context(), s, "old 1 ", search.Within{}, tree.Paging{}))(t)
	check.That(t, !page.Incomplete && len(page.Data) == 1, "caught up: %d hits, incomplete %t", len(page.Data), page.Incomplete)
}

// A message is found whose append waited for its turn longer than a search looks back.
func TestAppendThatWaitedIsFound(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s, find := tree.New(pool), search.New(0)
	id := conversation(t, s)
	tx := check.Must(pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.Background()) }()
	check.NoError(t, tree.New(tx).Lock(t.Context(), id))
	done := make(chan error, 1)
	go func() { done <- second(s.Append(t.Context(), id, uuid.Nil, user("the hazel"))) }()
	check.Eventually(t, "the append that waits", func() bool { return dbtest.Waiting(t, pool) > 0 })
	find.LookedUpTo(s, time.Now())
	check.NoError(t, tx.Commit(t.Context()))
	check.NoError(t, <-done)
	page := check.Must(find.Messages(t.Context(), s, "hazel", search.Within{}, tree.Paging{}))(t)
	check.That(t, len(page.Data) == 1, "%d hits, incomplete %t", len(page.Data), page.Incomplete)
}

// A message is found though a crash took the follower's last commits, which don't wait for the disk.
func TestMessageIsFoundAfterACrash(t *testing.T) {
	t.Parallel()
	s, find := search.NewStore(), search.New(0)
	id := conversation(t, s)
	mustAppend(t, s, id, uuid.Nil, user("the hazel"))
	for _, then := range []func(){
		func() { check.NoError(t, find.CatchUp(t.Context(), s)) },
		func() {
			for _, table := range []string{"search_chunks", "follower_places"} {
				check.Must(search.Database().Exec(t.Context(), "delete from "+table+" where conversation_id = $1", id))(t)
			}
			find.LookedUpTo(s, time.Now())
		},
		func() {},
	} {
		page := check.Must(find.Messages(t.Context(), s, "hazel", search.Within{}, tree.Paging{}))(t)
		check.That(t, len(page.Data) == 1, "%d hits, incomplete %t", len(page.Data), page.Incomplete)
		then()
	}
}

// What an attached file says is found, and the passage is given.
func TestFilesAreFound(t *testing.T) {
	t.Parallel()
	s, find := search.NewStore(), search.New(0)
	id := conversation(t, s)
	spec := check.Must3(s.Attachments().Add(t.Context(), "spec.md", []byte(strings.Repeat("filler ", 300)+"the budget is 4321 euros "+strings.Repeat("filler ", 300))))(t)
	m := mustAppend(t, s, id, uuid.Nil, tree.NewMessage{Message: chat.Read(fmt.Appendf(nil,
		`{"role":"user","content":[{"type":"text","text":"See this."},{"type":"file","file":{"file_id":"coppice:attachment/%x","filename":"spec.md"}}]}`, spec.Hash))})
	for range 2 { // before it is indexed, and after
		for _, query := range []string{"budget 4321 ", "spec.md"} {
			page := check.Must(find.Messages(t.Context(), s, query, search.Within{}, tree.Paging{}))(t)
			check.That(t, len(page.Data) == 1 && page.Data[0].Message.ID == m.ID &&
				(!strings.Contains(query, "4321") || strings.Contains(page.Data[0].Snippet, "budget is 4321")),
				"%q: %+v", query, page.Data)
		}
		check.NoError(t, find.CatchUp(t.Context(), s))
	}
	a := ask(t, find, s, id, m.ID, search.Question{Query: "What is the budget?", Scope: search.ScopeBranch})
	check.That(t, len(a.Hits) == 1 && strings.Contains(a.Hits[0].Excerpt, "budget is 4321"), "recall: %+v", a.Hits)
}

// No search reads a row of another tenant's, however much there is, of the same words.
func TestSearchReadsNothingOfOthers(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	mine, theirs, find := tree.New(pool).ForTenant("mine"), tree.New(pool).ForTenant("theirs"), search.New(0)
	library := func(s *tree.Store, conversations, length int) (id uuid.UUID) {
		for range conversations {
			id = chatter(t, s, length)
		}
		check.NoError(t, find.CatchUp(t.Context(), s))
		check.Must(search.AddSegments(t.Context(), s, 4))(t)
		return id
	}
	id := library(mine, 10, 80)
	library(theirs, 10, 80)
	page := tree.Paging{Limit: 20}
	calls := map[string]func(*search.Service, *tree.Store) (int, error){
		"titles": func(f *search.Service, s *tree.Store) (int, error) {
			list, err := f.Titles(t.Context(), s, "living")
			return len(list), err
		},
		"a question": func(f *search.Service, s *tree.Store) (int, error) {
			a, err := f.RecallTenant(t.Context(), s, search.Question{Query: "word3 unheardof"})
			return min(1, len(a.Hits)), err
		},
	}
	for where, in := range map[string]uuid.UUID{"a conversation: ": id, "a tenant: ": uuid.Nil} {
		for query := range map[string]bool{"living rods ": true, "word3 or word4 ": true, "unheardof ": true, `"living rods 42"`: true, "hazel -living": true, "liv": true} {
			calls[where+query] = func(f *search.Service, s *tree.Store) (int, error) {
				p, err := f.Messages(t.Context(), s, query, search.Within{ConversationID: in}, page)
				return len(p.Data), err
			}
			calls[where+"ranked: "+query] = func(f *search.Service, s *tree.Store) (int, error) {
				p, err := f.Ranked(t.Context(), s, query, search.Within{ConversationID: in}, page)
				return len(p.Data), err
			}
			calls["conversations: "+query] = func(f *search.Service, s *tree.Store) (int, error) {
				p, _, err := f.Conversations(t.Context(), s, tree.ConversationFilter{Query: query}, page)
				return len(p.Data), err
			}
		}
	}
	type counted struct{ found, rows int }
	measure := func() map[string]counted {
		check.Must(pool.Exec(t.Context(), "vacuum analyze"))(t)
		out := map[string]counted{}
		for what, call := range calls {
			found := 0
			rows := rowsOf(t, pool, func(s *tree.Store) { found = check.Must(call(search.New(0), s))(t) })
			out[what] = counted{found, rows}
		}
		return out
	}
	before := measure()
	library(theirs, 40, 80)
	for what, is := range measure() {
		// While there are few rows, a plan may read more of the own ones.
		was := before[what]
		check.That(t, dbtest.Shards(t) != 1 || is.found == was.found && is.rows <= was.rows,
			"%s: %+v beside 800 messages of another tenant, %+v beside 4,000", what, was, is)
	}
}

// rowsOf counts the rows of all tables that a call reads.
func rowsOf(t testing.TB, pool *pgxpool.Pool, call func(*tree.Store)) (rows int) {
	t.Helper()
	tx := dbtest.CountReads(t, pool)
	defer func() { _ = tx.Rollback(context.Background()) }()
	s := tree.New(tx).ForTenant("mine")
	read := func() (n int) {
		for name, is := range tx.Reads() {
			if !strings.Contains(name, "pg_") {
				n += is.Rows()
			}
		}
		return n
	}
	call(s) // what is read once, as of pages that were changed
	was := read()
	call(s)
	return read() - was
}

// What a newer program stored is found. An older one can't store what this one would miss.
func TestChunksOfOtherPrograms(t *testing.T) {
	t.Parallel()
	s, find := search.NewStore(), search.New(0)
	id := conversation(t, s)
	old := mustAppend(t, s, id, uuid.Nil, user("the aqueduct"))
	chain(t, s, id, old.ID, slices.Repeat([]tree.NewMessage{user("the message")}, 399)...)
	check.NoError(t, find.CatchUp(t.Context(), s))
	const store = "update search_chunks set data = set_byte(data, 0, $2) where conversation_id = $1 and number = 0"
	check.Must(search.Database().Exec(t.Context(), store, id, 255))(t)
	check.Must(search.AddSegments(t.Context(), s, 4))(t)
	page := check.Must(find.Messages(t.Context(), s, "aqueduct ", search.Within{}, tree.Paging{}))(t)
	check.That(t, len(page.Data) == 1, "%d messages are found", len(page.Data))
	_, err := search.Database().Exec(t.Context(), store, id, 1)
	check.That(t, err != nil, "a chunk of an older program is stored")
}
