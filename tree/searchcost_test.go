package tree_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

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
	tx := dbtest.CountReads(t, pool)
	defer func() { _ = tx.Rollback(context.Background()) }()
	read := func() (e effort) {
		all := tx.Reads()
		for name, is := range all {
			switch {
			case name == "nodes" || name == "conversations":
				e.rows += is.Rows()
				e.tablePages += is.Pages
			case strings.HasPrefix(name, "nodes_") || strings.HasPrefix(name, "conversations_"):
				e.indexPages += is.Pages
			}
		}
		e.checked = all["nodes_pkey"].Fetched
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

// No search for what was said long ago reads what another tenant wrote: what the
// newest messages don't answer comes from the index of words alone.
func TestSearchOfOldReadsNothingOfOthers(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	mine, theirs := tree.New(pool).ForTenant("mine"), tree.New(pool).ForTenant("theirs")
	old := newConversation(t, mine)
	if _, _, err := mine.AppendChain(t.Context(), old.ID, uuid.Nil, []tree.NewMessage{user("A mistletoe grows there.")}); err != nil {
		t.Fatal(err)
	}
	chatter(t, mine, 3000) // more than a search looks at before it takes the index
	measure := func(in uuid.UUID) effort {
		t.Helper()
		if _, err := pool.Exec(t.Context(), "vacuum analyze nodes, conversations"); err != nil {
			t.Fatal(err)
		}
		return effortOf(t, pool, "mine", func(s *tree.Store) error {
			p, err := s.Search(t.Context(), "mistletoe", in, tree.Paging{Limit: 50})
			if len(p.Data) != 1 {
				t.Errorf("%d found", len(p.Data))
			}
			return err
		})
	}
	in := map[string]uuid.UUID{"a tenant": uuid.Nil, "a conversation": old.ID}
	before := map[string]effort{}
	chatter(t, theirs, 100)
	for what, id := range in {
		before[what] = measure(id)
	}
	for range 5 {
		chatter(t, theirs, 2000)
	}
	for what, id := range in {
		was, is := before[what], measure(id)
		if dbtest.Shards(t) == 1 && (is.indexPages > was.indexPages+db.SearchLevels+2 || is.rows > was.rows) {
			t.Errorf("%s: %+v beside 100 messages of another tenant, %+v beside 10,100", what, was, is)
		}
	}
}

// No search reads what another tenant wrote: no row, and no entry of an index,
// however much there is of it, and of the same words.
func TestSearchReadsNothingOfOthers(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	mine, theirs := tree.New(pool).ForTenant("mine"), tree.New(pool).ForTenant("theirs")
	id := chatter(t, mine, 100)
	chatter(t, theirs, 100)
	if dbtest.Shards(t) > 1 {
		fill(t, pool, "theirs") // else Postgres reads a shard of three pages rather than its index
		// An index of what lies below a message has a second page from then on, as on
		// plain Postgres, so that it becomes no higher by the messages that come.
		for shardOf(t, pool, chatter(t, theirs, 300)) != shardOf(t, pool, id) {
		}
	}
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
		same := is.rows == was.rows && is.checked == was.checked
		if dbtest.Shards(t) > 1 { // a shard's plan may come to a row by either index
			same = is.rows+is.checked == was.rows+was.checked
		}
		if !same || is.tablePages > was.tablePages+was.checked {
			t.Errorf("%s: %+v beside 100 messages of another tenant, %+v beside 10,100", what, was, is)
		}
		// The search index, which is entered once for each word and length of hash,
		// becomes a page higher, and the list of a conversation's rows is on other pages.
		most := was.indexPages + calls[what].terms*db.SearchLevels + 2
		if dbtest.Shards(t) > 1 {
			most += 2 * max(0, is.checked-was.checked) // where a plan comes to each row by its id now
		}
		if is.indexPages > most {
			t.Errorf("%s: %d pages of indexes beside 100 messages of another tenant, %d beside 10,100", what, was.indexPages, is.indexPages)
		}
		t.Logf("%s: %+v, %+v", what, was, is)
	}
}

// shardOf is the number of the shard of Citus that holds a conversation.
func shardOf(t testing.TB, pool *pgxpool.Pool, id uuid.UUID) (shard int64) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "select get_shard_id_for_distribution_column('nodes', $1::uuid)", id).Scan(&shard); err != nil {
		t.Fatal(err)
	}
	return shard
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
	if _, err := tx.Exec(t.Context(), "set local statement_timeout = '500ms'"); err != nil {
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
