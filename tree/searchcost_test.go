package tree_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
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
	noError(t, call(s))
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
	mustAppend(t, mine, old.ID, uuid.Nil, user("A mistletoe grows there."))
	chatter(t, mine, 1500) // more than a search looks at before it takes the index
	measure := func(in uuid.UUID) effort {
		t.Helper()
		must(pool.Exec(t.Context(), "vacuum analyze nodes, conversations"))(t)
		return effortOf(t, pool, "mine", func(s *tree.Store) error {
			p, err := s.Search(t.Context(), "mistletoe", in, tree.Paging{Limit: 50})
			if len(p.Data) != 1 {
				t.Errorf("%d found", len(p.Data))
			}
			return err
		})
	}
	chatter(t, theirs, 100)
	before := []effort{measure(uuid.Nil), measure(old.ID)}
	for range 3 {
		chatter(t, theirs, 2000)
	}
	for i, in := range []uuid.UUID{uuid.Nil, old.ID} {
		was, is := before[i], measure(in)
		if dbtest.Shards(t) == 1 && (is.indexPages > was.indexPages+db.SearchLevels+2 || is.rows > was.rows) {
			t.Errorf("in %s: %+v beside 100 messages of another tenant, %+v beside 6,100", in, was, is)
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
	type asked struct {
		terms, found int
		call         func(*tree.Store) (int, error)
	}
	calls := map[string]asked{
		"titles": {1, 0, func(s *tree.Store) (int, error) {
			list, err := s.SearchTitles(t.Context(), "living")
			return len(list), err
		}},
		"candidates": {4, 1, func(s *tree.Store) (int, error) {
			return len(candidates(t, s, "living", "rods", "word3", "unheardof")), nil
		}},
	}
	hits := func(p tree.Page[tree.Hit], err error) (int, error) { return len(p.Data), err }
	page := tree.Paging{Limit: 50}
	for where, in := range map[string]uuid.UUID{"a conversation: ": id, "a tenant: ": uuid.Nil} {
		for query, found := range map[string]int{"living rods": 50, "word3 or word4": 20, "unheardof": 0, `"living rods 42"`: 1, "hazel -living": 0} {
			terms := len(strings.Fields(query))
			calls[where+query] = asked{terms, found, func(s *tree.Store) (int, error) { return hits(s.Search(t.Context(), query, in, page)) }}
			calls["conversations: "+query] = asked{terms, min(found, 1), func(s *tree.Store) (int, error) {
				p, err := s.Conversations(t.Context(), tree.ConversationFilter{Query: query}, page)
				return len(p.Data), err
			}}
		}
		for query, found := range map[string]int{"unheardof": 0, "unheardof rods 42": 50, `living "unheardof"`: 0} {
			calls[where+"ranked: "+query] = asked{len(strings.Fields(query)), found, func(s *tree.Store) (int, error) { return hits(s.SearchRanked(t.Context(), query, in, page)) }}
		}
	}
	measure := func() map[string]effort {
		must(pool.Exec(t.Context(), "vacuum analyze nodes, conversations"))(t)
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
	for range 2 {
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
			t.Errorf("%s: %+v beside 100 messages of another tenant, %+v beside 4,100", what, was, is)
		}
		// The search index, which is entered once for each word and length of hash,
		// becomes a page higher, and the list of a conversation's rows is on other pages.
		most := was.indexPages + calls[what].terms*db.SearchLevels + 2
		if dbtest.Shards(t) > 1 {
			most += 2 * max(0, is.checked-was.checked) // where a plan comes to each row by its id now
		}
		if is.indexPages > most {
			t.Errorf("%s: %d pages of indexes beside 100 messages of another tenant, %d beside 4,100", what, was.indexPages, is.indexPages)
		}
	}
}

// shardOf is the number of the shard of Citus that holds a conversation.
func shardOf(t testing.TB, pool *pgxpool.Pool, id uuid.UUID) (shard int64) {
	t.Helper()
	noError(t, pool.QueryRow(t.Context(), "select get_shard_id_for_distribution_column('nodes', $1::uuid)", id).Scan(&shard))
	return shard
}
