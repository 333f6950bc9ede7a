package tree_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// meanwhile ends a transaction once a call waits for it, or is done, and gives the call's error.
func meanwhile(t *testing.T, pool *pgxpool.Pool, open func(*tree.Store) error, call func() error) error {
	t.Helper()
	tx := must(pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.Background()) }()
	noError(t, open(tree.New(tx, tree.WithLimits(tree.Limits{Conversations: 1}))))
	done := make(chan error, 1)
	go func() { done <- call() }()
	check.Eventually(t, "the call to wait or end", func() bool { return dbtest.Waiting(t, pool) > 0 || len(done) > 0 })
	noError(t, tx.Commit(t.Context()))
	return <-done
}

// Of two writers of one conversation the second waits, and goes on from what the first one stored.
func TestWritersOfAConversationTakeTurns(t *testing.T) {
	t.Parallel()
	pool, s, c := newPool(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	chain := func(s *tree.Store, first uuid.UUID) (bool, error) {
		stored, err := s.AppendChain(t.Context(), c.ID, root.ID, []tree.NewMessage{{ID: first, Message: chat.Read(root.Body)}, {ID: uuid.NewSHA1(first, nil), Message: chat.Read(root.Body)}})
		return stored.Created, err
	}
	one := func(s *tree.Store, id uuid.UUID) (bool, error) {
		stored, err := s.Append(t.Context(), c.ID, root.ID, tree.NewMessage{ID: id, Message: chat.Read(root.Body)})
		return stored.Created, err
	}
	below := func(s *tree.Store, id uuid.UUID) (bool, error) {
		stored, err := s.Append(t.Context(), c.ID, id, user("below"))
		return stored.Created, err
	}
	moved := func(s *tree.Store, id uuid.UUID) (bool, error) {
		return true, second(s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{HeadID: id}))
	}
	prune := func(s *tree.Store, id uuid.UUID) (bool, error) { return true, second(s.Prune(t.Context(), c.ID, id)) }
	type write func(*tree.Store, uuid.UUID) (bool, error)
	for name, test := range map[string]struct {
		there, same   bool // the message is stored before; both are given its id
		first, second write
		created       bool
		err           error
		children      int // of the root, in the end
	}{
		"two messages":                    {first: one, second: one, created: true, children: 2},
		"a message and a chain":           {first: one, second: chain, created: true, children: 2},
		"a chain and a message":           {first: chain, second: one, created: true, children: 2},
		"a message twice":                 {same: true, first: one, second: one, children: 1},
		"a chain twice":                   {same: true, first: chain, second: chain, children: 1},
		"a prune, and a message below it": {there: true, same: true, first: prune, second: below, err: fault.NotFound},
		"a prune, and a head there":       {there: true, same: true, first: prune, second: moved, err: fault.Invalid},
		"a message below, and a prune":    {there: true, same: true, first: below, second: prune, created: true},
		"a head, and its prune":           {there: true, same: true, first: moved, second: prune, created: true},
	} {
		id, other := uuid.New(), uuid.New()
		if test.same {
			other = id
		}
		if test.there {
			must(one(s, id))(t)
		}
		var created bool
		err := meanwhile(t, pool, func(s *tree.Store) error { return second(test.first(s, id)) }, func() (err error) {
			created, err = test.second(s, other)
			return err
		})
		check.That(t, errors.Is(err, test.err) && (err != nil || created == test.created),
			"%s: created %t, %v; want %t, %v", name, created, err, test.created, test.err)
		children := must(s.Children(t.Context(), c.ID, root.ID, tree.Paging{}))(t).Data
		check.That(t, len(children) == test.children, "%s: the root has %d children, want %d", name, len(children), test.children)
		for i, m := range children {
			check.That(t, m.Siblings == (tree.Siblings{Index: i + 1, Count: len(children)}), "%s: child %d is %+v", name, i, m.Siblings)
			must(s.Prune(t.Context(), c.ID, m.ID))(t)
		}
		check.Equal(t, name+": the head", activeHead(t, s, c.ID), root.ID)
	}
}

// On Citus the turn is the coordinator's: a row's lock stays behind when its shard is moved.
func TestTurnsOutliveAMoveOfTheShard(t *testing.T) {
	t.Parallel()
	dbtest.NeedsCitus(t)
	pool := dbtest.New(t)
	c := newConversation(t, tree.New(pool))
	root := mustAppend(t, tree.New(pool), c.ID, uuid.Nil, user("root"))
	for name, write := range map[string]func(*tree.Store) error{
		"an append": func(s *tree.Store) error { return second(s.Append(t.Context(), c.ID, root.ID, user("more"))) },
		"a chain": func(s *tree.Store) error {
			return second(s.AppendChain(t.Context(), c.ID, root.ID, []tree.NewMessage{user("one"), user("two")}))
		},
		"a pin": func(s *tree.Store) error {
			return second(s.UpdateMessage(t.Context(), c.ID, root.ID, tree.MessageUpdate{Pinned: new(true)}))
		},
	} {
		tx := must(pool.Begin(t.Context()))(t)
		turns := func() (n int) {
			const held = `select count(*) from pg_locks where locktype = 'advisory' and classid = 1668246643 and granted
				and database = (select oid from pg_database where datname = current_database())`
			noError(t, pool.QueryRow(t.Context(), held).Scan(&n))
			return n
		}
		if err := write(tree.New(tx)); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if n := turns(); n != 1 {
			t.Errorf("%s holds %d turns, want one until its transaction ends", name, n)
		}
		noError(t, tx.Rollback(t.Context()))
		check.Equal(t, name+": turns left behind", turns(), 0)
	}
}

// Of two who make the last conversation that a limit allows, the second is refused.
func TestMakersOfConversationsTakeTurns(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	limited := tree.New(pool, tree.WithLimits(tree.Limits{Conversations: 1}))
	err := meanwhile(t, pool, func(s *tree.Store) error { return third(s.CreateConversation(t.Context(), tree.NewConversation{})) }, func() error { return third(limited.CreateConversation(t.Context(), tree.NewConversation{})) })
	check.That(t, errors.Is(err, fault.Full), "a second conversation where one is the most: %v, want ErrLimit", err)
}

// What a caller's transaction appends is there only if it commits, and a refused append doesn't break it.
func TestInTransaction(t *testing.T) {
	t.Parallel()
	pool, s, c := newPool(t)
	for _, commit := range []bool{true, false} {
		tx := must(pool.Begin(t.Context()))(t)
		inTx := tree.New(tx)
		m := mustAppend(t, inTx, c.ID, uuid.Nil, user("in a transaction"))
		refused(t, "an absent parent", second(inTx.Append(t.Context(), c.ID, uuid.New(), user("x"))), fault.NotFound)
		refused(t, "an absent parent", second(inTx.AppendChain(t.Context(), c.ID, uuid.New(), []tree.NewMessage{user("x")})), fault.NotFound)
		chain := must(inTx.AppendChain(t.Context(), c.ID, m.ID, []tree.NewMessage{user("x"), user("y")}))(t).Messages
		finish(t, tx, commit)
		_, err := s.Message(t.Context(), c.ID, chain[1].ID)
		check.That(t, (err == nil) == commit, "committed %t, and reading it gives %v", commit, err)
	}
}

// A caller's transaction keeps its settings, whether a method succeeds or fails.
func TestCallersTransactionKeepsItsSettings(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.StatementTimeout(7*time.Minute))
	all := tree.New(pool)
	c, taken := newConversation(t, all), newConversation(t, all)
	m := mustAppend(t, all, c.ID, uuid.Nil, user("tip"))
	unsound := bundleOf(uuid.New(), 1500)
	unsound.Nodes[1499].Body = nil
	for _, own := range []string{"", "set local statement_timeout = '4321ms'", "set local statement_timeout = 0"} {
		for name, test := range map[string]struct {
			call func(*tree.Store) error
			want error
		}{
			"a fork": {func(s *tree.Store) error { return third(s.Fork(t.Context(), c.ID, m.ID, tree.NewConversation{})) }, nil},
			"a fork that is refused": {func(s *tree.Store) error {
				return third(s.Fork(t.Context(), c.ID, m.ID, tree.NewConversation{ID: taken.ID}))
			}, fault.Conflict},
			"an import":                 {func(s *tree.Store) error { return second(s.Import(t.Context(), bundleOf(uuid.New(), 1000))) }, nil},
			"an import that is refused": {func(s *tree.Store) error { return second(s.Import(t.Context(), unsound)) }, fault.Invalid},
			"a prune":                   {func(s *tree.Store) error { return second(s.Prune(t.Context(), c.ID, m.ID)) }, nil},
			"a delete":                  {func(s *tree.Store) error { return s.DeleteConversation(t.Context(), c.ID) }, nil},
		} {
			tx := must(pool.Begin(t.Context()))(t)
			must(tx.Exec(t.Context(), own))(t)
			before := settings(t, tx)
			refused(t, name, test.call(tree.New(tx)), test.want)
			check.Equal(t, name+", after "+own+": the settings", settings(t, tx), before)
			noError(t, tx.Rollback(t.Context()))
		}
	}
}

// settings are all that a session or a transaction may have set.
func settings(t *testing.T, tx pgx.Tx) (all string) {
	t.Helper()
	const query = "select string_agg(name || '=' || setting, ' ' order by name) from pg_settings where source = 'session' or name like '%\\_timeout'"
	noError(t, tx.QueryRow(t.Context(), query).Scan(&all))
	return all
}

// An import whose wait for a lock the database ends gives that error, and says nothing of the id.
func TestImportKeepsTheDatabasesErrors(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	c := newConversation(t, tree.New(pool))
	holder := must(pool.Begin(t.Context()))(t)
	defer func() { _ = holder.Rollback(context.Background()) }()
	noError(t, tree.New(holder).Lock(t.Context(), c.ID))
	for _, setting := range []string{"lock_timeout", "statement_timeout"} {
		tx := must(pool.Begin(t.Context()))(t)
		must(tx.Exec(t.Context(), "set local "+setting+" = '50ms'"))(t)
		refused(t, setting, second(tree.New(tx).Import(t.Context(), bundleOf(c.ID, 1))), fault.Timeout)
		noError(t, tx.Rollback(t.Context()))
	}
}

// An import may store much at a time, which takes longer than other statements may.
func TestImportMayTakeLong(t *testing.T) {
	t.Parallel()
	const bound = 500 * time.Millisecond
	pool := dbtest.New(t, dbtest.StatementTimeout(bound))
	s := tree.New(pool)
	holder := must(pool.Begin(t.Context()))(t)
	released := make(chan error, 1)
	release := func() { released <- holder.Rollback(context.Background()) }
	if _, err := holder.Exec(t.Context(), "lock table nodes in share mode"); err != nil { // which a COPY waits for
		release()
		t.Fatal(err)
	}
	time.AfterFunc(2*bound, release)
	got, err := s.Import(t.Context(), bundleOf(uuid.New(), 1000))
	check.That(t, err == nil && got[0].Added == 1000, "%v, %v", got, err)
	noError(t, <-released)
}

// Of a locked conversation's writers one waits with a connection, the others in memory; other conversations don't wait.
func TestWritersWaitWithoutConnections(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pool := dbtest.New(t)
	s := tree.New(pool)
	busy, other := newConversation(t, s).ID, newConversation(t, s).ID
	said := tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":"What is a coppice?"}`))}
	m, pruned := mustAppend(t, s, busy, uuid.Nil, said), mustAppend(t, s, busy, uuid.Nil, said)
	holder := must(pool.Begin(ctx))(t)
	check.NoError(t, tree.New(holder).Lock(ctx, busy))
	writers := []func() error{
		func() error { return third(s.Fork(ctx, busy, m.ID, tree.NewConversation{})) },
		func() error { return third(s.Fork(ctx, busy, m.ID, tree.NewConversation{})) },
		func() error { return second(s.Append(ctx, busy, m.ID, said)) },
		func() error { return second(s.AppendChain(ctx, busy, m.ID, []tree.NewMessage{said, said})) },
		func() error {
			return second(s.UpdateConversation(ctx, busy, tree.ConversationUpdate{Title: new("Hazel")}))
		},
		func() error { return second(s.Prune(ctx, busy, pruned.ID)) },
	}
	written := make(chan error, len(writers))
	for _, write := range writers {
		go func() { written <- write() }()
	}
	check.Eventually(t, "the writers", func() bool { return s.WaitingWriters(busy) == len(writers)-1 && pool.Stat().AcquiredConns() >= 2 })
	check.Equal(t, "connections in use, the holder's and one writer's", pool.Stat().AcquiredConns(), 2)
	mustAppend(t, s, other, uuid.Nil, said)
	check.NoError(t, holder.Rollback(ctx))
	for range writers {
		noError(t, <-written)
	}
}

// A follower is told of the branches that grew since its place, with their sizes, and which of them end the others.
func TestGrowth(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	id := newConversation(t, s).ID
	pending := func() tree.Pending {
		t.Helper()
		behind := must(s.Feed().Pending(t.Context(), "test", []uuid.UUID{id, uuid.New()}))(t)
		check.Need(t, len(behind) == 1 && behind[0].ConversationID == id && behind[0].TenantID == tree.DefaultTenant, "%+v", behind)
		return behind[0]
	}
	growth := func() tree.Growth { t.Helper(); return must(s.Feed().Growths(t.Context(), pending()))(t)[0] }
	move := func(p tree.Pending) bool {
		t.Helper()
		return must(s.Feed().Move(t.Context(), "test", p))(t)[0]
	}
	system := mustAppend(t, s, id, uuid.Nil, tree.NewMessage{Message: chat.Read(said(tree.RoleSystem, "Be brief."))})
	first := mustAppend(t, s, id, system.ID, user("What grows in half shade?"))
	g := growth()
	check.That(t, g.Forgot && len(g.Leaves()) == 1 && g.Leaves()[0].HeadID == first.ID, "before its first place: %+v", g)
	before := pending()
	check.That(t, move(before) && !move(before), "a place moves once from where it was")

	chain := must(s.AppendChain(t.Context(), id, first.ID, []tree.NewMessage{user("a"), user("b")}))(t).Messages
	after := mustAppend(t, s, id, chain[1].ID, user("c"))
	side := mustAppend(t, s, id, first.ID, user("beside"))
	root := mustAppend(t, s, id, uuid.Nil, user("a new root"))
	gone := mustAppend(t, s, id, root.ID, user("pruned"))
	g = growth()
	var heads []uuid.UUID
	for _, b := range g.Leaves() {
		heads = append(heads, b.HeadID)
	}
	check.That(t, !g.Forgot && !g.Reshaped && slices.Equal(heads, []uuid.UUID{after.ID, side.ID, gone.ID}), "%+v", g)
	want := tree.GrownBranch{HeadID: after.ID, ParentID: chain[1].ID, PathTokens: after.PathTokens, Depth: 4, PrefixTokens: system.Tokens, PrefixMessages: 1}
	check.Equal(t, "the leaf", g.Leaves()[0], want)
	must(s.Prune(t.Context(), id, gone.ID))(t)
	g = growth()
	check.That(t, g.Reshaped && g.Leaves()[2].HeadID == root.ID, "after a prune: %+v", g)

	must(pool.Exec(t.Context(), "delete from changes"))(t)
	g = growth()
	check.That(t, g.Forgot && len(g.Branches) == 1 && g.Branches[0].HeadID == activeHead(t, s, id), "of what the feed forgot: %+v", g)
	noError(t, s.DeleteConversation(t.Context(), id))
	check.That(t, !move(tree.Pending{ConversationID: id, Place: before.Sequence, Sequence: before.Sequence + 1}),
		"the place of a conversation moved that is gone")
}
