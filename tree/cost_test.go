package tree_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

// Beside many small conversations, a plan that believes statistics reads a large one whole at each step.
func TestReadsOnlyWhatItGives(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pool := dbtest.New(t)
	s := tree.New(pool)
	id, ids := skewed(t, pool, s)
	head := ids[len(ids)-1]
	mid := ids[len(ids)/2]
	must(s.Summaries().Add(t.Context(), id, tree.NewSummary{
		AnchorID: mid, Body: said(tree.RoleUser, "What was said."),
		Range: tree.SummaryRange{LastSummarizedID: ids[len(ids)/2-4], KeptIDs: ids[:3], Model: "a test"},
	}))(t)
	noError(t, newSearch().CatchUp(t.Context(), s))
	must(pool.Exec(t.Context(), "analyze"))(t)
	below := len(ids) - len(ids)/2
	for _, test := range []struct {
		what  string
		reads int // messages that the call has to do with
		call  func(*tree.Store) error
	}{
		{"a message", 1, func(s *tree.Store) error { return second(s.Message(ctx, id, mid)) }},
		{"messages", 100, func(s *tree.Store) error { return second(s.Messages(ctx, id, ids[:100])) }},
		{"a branch's state", 2, func(s *tree.Store) error { return second(s.Index().BranchState(ctx, id, head)) }},
		{"messages to remember", 50, func(s *tree.Store) error {
			return s.Index().Ancestors(ctx, id, head, 50, func(tree.MessageText) error { return nil })
		}},
		{"some of them", 100, func(s *tree.Store) error {
			return s.Index().Texts(ctx, id, ids[:100], func(tree.MessageText) error { return nil })
		}},
		{"children", 1, func(s *tree.Store) error { return second(s.Children(ctx, id, mid, tree.Paging{Limit: 10})) }},
		{"a page of a transcript", 50, func(s *tree.Store) error { return second(s.Transcript(ctx, id, head, tree.Paging{Limit: 50})) }},
		{"a comparison", 3 * 40, func(s *tree.Store) error {
			return second(s.Compare(ctx, id, ids[len(ids)/2-20], ids[len(ids)/2+20], 50))
		}},
		{"the end of a branch", 2 * 50, func(s *tree.Store) (err error) {
			for _, err = range s.Branch(ctx, id, uuid.Nil, 50) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"a view up to a budget", 50, func(s *tree.Store) error { return second(s.View(ctx, id, head, 150)) }},
		{"a view up to a cutoff", 50, func(s *tree.Store) error { return second(s.View(ctx, id, ids[len(ids)/2+40], 1<<40)) }},
		{"a view without bodies", 50, func(s *tree.Store) error {
			return second(s.View(ctx, id, ids[len(ids)/2+40], 1<<40, tree.Skeleton()))
		}},
		{"the newest leaf", below, func(s *tree.Store) error { return second(s.NewestLeaf(ctx, id, mid)) }},
		{"a search", below + 10, func(s *tree.Store) error {
			return second(find(ctx, s, fmt.Sprint("word", len(ids)/2), id, tree.Paging{}))
		}},
		{"an append", 3, func(s *tree.Store) error { return second(s.Append(ctx, id, mid, user("And then?"))) }},
		{"what a follower reads of an append", 2, func(s *tree.Store) error {
			behind := must(s.Feed().Pending(ctx, "test", []uuid.UUID{id}))(t)[0]
			behind.Place = behind.Sequence - 1
			return second(s.Feed().Growths(ctx, behind))
		}},
		{"a new message without a vector", 2, func(s *tree.Store) error {
			return second(s.Index().Unembedded(ctx, id, "test", must(s.Feed().ChangeCount(ctx, id))(t)-1, 10))
		}},
		{"a fork", 2 * below, func(s *tree.Store) error { return third(s.Fork(ctx, id, ids[len(ids)/2-1], tree.NewConversation{})) }},
		// Its delete may read the conversation once, and no more. Each row counts in its table and in its index.
		{"a prune", len(ids) / 2, func(s *tree.Store) error { return second(s.Prune(ctx, id, ids[len(ids)-5])) }},
	} {
		t.Run(test.what, func(t *testing.T) {
			if got := rowsRead(t, pool, test.call); got > 4*test.reads+20 {
				t.Errorf("it reads %d rows for %d messages", got, test.reads)
			} else {
				t.Logf("%d rows for %d messages", got, test.reads)
			}
		})
	}
}

// So it is in a database's first conversation, whose connections planned for empty or small tables.
func TestFirstConversation(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dbtest.OnPlain(t, "until its shard has statistics, an append reads the conversation")
	pool := dbtest.New(t, dbtest.MaxConns(1))
	s := tree.New(pool)
	id, head := newConversation(t, s).ID, uuid.Nil
	for i := range 300 {
		m := must(s.Append(t.Context(), id, head, user("On and on.")))(t).Message
		head = m.ID
		if i == 60 {
			must(pool.Exec(t.Context(), "analyze"))(t) // as autovacuum does after fifty
		}
	}
	got := rowsRead(t, pool, func(s *tree.Store) error { return second(s.Append(ctx, id, head, user("And then?"))) })
	check.That(t, got <= 10, "an append after 300 others reads %d rows", got)
	const imported = 1000
	chain := bundleOf(uuid.New(), imported)
	for i := range chain.Nodes[1:] {
		chain.Nodes[i+1].ParentID = chain.Nodes[i].ID
	}
	got = rowsRead(t, pool, func(s *tree.Store) error { return second(s.Import(ctx, chain)) })
	check.That(t, got <= 10*imported, "an import of %d messages reads %d rows", imported, got)
}

// fill stores 10,000 conversations of four messages.
func fill(t *testing.T, pool *pgxpool.Pool, tenant string) {
	t.Helper()
	for _, fill := range []string{
		`insert into conversations (id, tenant_id, title, metadata, settings, created_at, updated_at)
		 select gen_random_uuid(), '` + tenant + `', '', '{}', '{}', now(), now() from generate_series(1, 10000)`,
		`insert into nodes (conversation_id, id, kind, role, sibling_index, depth, tokens, path_tokens, pinned, created_at, body)
		 select c.id, gen_random_uuid(), 'message', 'user', i, 0, 10, 10, false, now(), '{"role":"user","content":"x"}'
		 from conversations c, generate_series(1, 4) i where c.tenant_id = '` + tenant + `' and c.message_count = 0`,
	} {
		must(pool.Exec(t.Context(), fill))(t)
	}
}

// skewed fills a database with small conversations and a line of messages.
func skewed(t *testing.T, pool *pgxpool.Pool, s *tree.Store) (uuid.UUID, []uuid.UUID) {
	t.Helper()
	fill(t, pool, tree.DefaultTenant)
	id := newConversation(t, s).ID
	var ids []uuid.UUID
	for len(ids) < 4000 {
		chain := make([]tree.NewMessage, 500)
		for i := range chain {
			chain[i] = user(fmt.Sprint("word", len(ids)+i))
		}
		parent := uuid.Nil
		if len(ids) > 0 {
			parent = ids[len(ids)-1]
		}
		stored := must(s.AppendChain(t.Context(), id, parent, chain))(t).Messages
		for _, m := range stored {
			ids = append(ids, m.ID)
		}
	}
	return id, ids
}

// rowsRead counts the rows of nodes that a call reads, and undoes the call.
func rowsRead(t *testing.T, pool *pgxpool.Pool, call func(*tree.Store) error) int {
	t.Helper()
	return rowsReadOf(t, pool, "nodes", call)
}

// rowsReadOf is rowsRead for any table.
func rowsReadOf(t *testing.T, pool *pgxpool.Pool, table string, call func(*tree.Store) error) int {
	t.Helper()
	tx := dbtest.CountReads(t, pool)
	defer func() { _ = tx.Rollback(context.Background()) }()
	read := func() (n int) {
		for name, is := range tx.Reads() {
			if name == table {
				n += is.Rows()
			} else if strings.HasPrefix(name, table+"_") { // an index
				n += is.Fetched
			}
		}
		return n
	}
	before := read()
	noError(t, call(tree.New(tx)))
	return read() - before
}

// A small tenant's requests read no larger one's conversations: their time would tell how many there are.
func TestNoForeignConversationIsRead(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dbtest.OnPlain(t, "the nodes of a small table's shards read them whole")
	pool := dbtest.New(t, dbtest.MaxConns(1))
	const own, others = 5, 300
	conversations := func(tenant string, n int) (id uuid.UUID) {
		s := tree.New(pool).ForTenant(tenant)
		for range n {
			id = newConversation(t, s).ID
			mustAppend(t, s, id, uuid.Nil, user("an oak"))
		}
		return id
	}
	conversations("others", others)
	id := conversations("own", own)
	must(pool.Exec(t.Context(), "vacuum analyze"))(t)
	limits := tree.WithLimits(tree.Limits{Conversations: own + 1})
	for what, call := range map[string]func(*tree.Store) error{
		"a list": func(s *tree.Store) error {
			return second(s.Conversations(ctx, tree.ConversationFilter{}, tree.Paging{}))
		},
		"a list by title": func(s *tree.Store) error {
			return third(newSearch().Conversations(ctx, s, tree.ConversationFilter{Query: "oak"}, tree.Paging{}))
		},
		"a conversation by its name": func(s *tree.Store) error { return second(s.FindConversation(ctx, id.String()[:6])) },
		"a search":                   func(s *tree.Store) error { return second(find(ctx, s, "oak", uuid.Nil, tree.Paging{})) },
		"a ranked search": func(s *tree.Store) error {
			return second(newSearch().Ranked(ctx, s, "oak", search.Within{}, tree.Paging{}))
		},
		"a new one under a limit": func(s *tree.Store) error { return third(s.CreateConversation(ctx, tree.NewConversation{})) },
		"an append":               func(s *tree.Store) error { return second(s.Append(ctx, id, uuid.Nil, user("an ash"))) },
	} {
		got := rowsReadOf(t, pool, "conversations", func(s *tree.Store) error {
			limits(s)
			return call(s.ForTenant("own"))
		})
		check.That(t, got <= 6*own, "%s reads %d rows of conversations, of which %d are the tenant's", what, got, own)
	}
}

// effort is what Postgres read for a call.
type effort struct {
	rows       int // of nodes and conversations
	tablePages int // of them
	indexPages int // of all their indexes
	checked    int // rows that were looked up by their ids
}

// effortOf measures a call in a transaction that is undone, after a first one that reads catalogs.
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
	noError(t, call(s)) // what is read once, as of catalogs and of pages that were changed
	before := read()
	noError(t, call(s))
	e := read()
	return effort{e.rows - before.rows, e.tablePages - before.tablePages, e.indexPages - before.indexPages, e.checked - before.checked}
}
