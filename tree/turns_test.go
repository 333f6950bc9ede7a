package tree_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// meanwhile starts a call while a transaction is open, and ends the transaction
// once the call waits for it, or is done because it doesn't. It gives the
// call's error.
func meanwhile(t *testing.T, pool *pgxpool.Pool, open func(*tree.Store) error, call func() error) error {
	t.Helper()
	tx := must(pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.Background()) }()
	noError(t, open(tree.New(tx, tree.WithLimits(tree.Limits{Conversations: 1}))))
	done := make(chan error, 1)
	go func() { done <- call() }()
	for deadline := time.Now().Add(30 * time.Second); dbtest.Waiting(t, pool) == 0 && len(done) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the call neither waits nor ends")
		}
	}
	noError(t, tx.Commit(t.Context()))
	return <-done
}

// Two writers of one conversation take turns: the second waits, and counts on
// from what the first one stored.
func TestWritersOfAConversationTakeTurns(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	var first, second tree.Message
	err := meanwhile(t, pool, func(s *tree.Store) (err error) {
		first, _, err = s.Append(t.Context(), c.ID, root.ID, user("first"))
		return err
	}, func() (err error) {
		second, _, err = s.Append(t.Context(), c.ID, root.ID, user("second"))
		return err
	})
	noError(t, err)
	if first.Siblings.Index != 1 || second.Siblings != (tree.Siblings{Index: 2, Count: 2}) {
		t.Errorf("the siblings are %+v and %+v", first.Siblings, second.Siblings)
	}
}

// On a distributed database the turn is the coordinator's. A lock on the row alone
// stays behind when the row's shard is moved, and the next writer doesn't wait.
func TestTurnsOutliveAMoveOfTheShard(t *testing.T) {
	t.Parallel()
	dbtest.NeedsCitus(t)
	pool := dbtest.New(t)
	c := newConversation(t, tree.New(pool))
	root := mustAppend(t, tree.New(pool), c.ID, uuid.Nil, user("root"))
	for name, write := range map[string]func(*tree.Store) error{
		"an append": func(s *tree.Store) error { return third(s.Append(t.Context(), c.ID, root.ID, user("more"))) },
		"a chain": func(s *tree.Store) error {
			return third(s.AppendChain(t.Context(), c.ID, root.ID, []tree.NewMessage{user("one"), user("two")}))
		},
		"a pin": func(s *tree.Store) error { return second(s.PinMessage(t.Context(), c.ID, root.ID, true)) },
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
		if n := turns(); n != 0 {
			t.Errorf("%s left %d turns behind", name, n)
		}
	}
}

// Two who make the last conversation that a limit allows take turns, too: the
// second is refused.
func TestMakersOfConversationsTakeTurns(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	limited := tree.New(pool, tree.WithLimits(tree.Limits{Conversations: 1}))
	err := meanwhile(t, pool, func(s *tree.Store) error { return third(s.CreateConversation(t.Context(), tree.NewConversation{})) }, func() error { return third(limited.CreateConversation(t.Context(), tree.NewConversation{})) })
	if !errors.Is(err, fault.Full) {
		t.Errorf("a second conversation where one is the most: %v, want ErrLimit", err)
	}
}

// A caller's transaction: what is appended in it is there when it commits, is
// gone when it doesn't, and a refused append doesn't break it.
func TestInTransaction(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	c := newConversation(t, s)
	for _, commit := range []bool{true, false} {
		tx := must(pool.Begin(t.Context()))(t)
		inTx := tree.New(tx)
		m := mustAppend(t, inTx, c.ID, uuid.Nil, user("in a transaction"))
		if _, _, err := inTx.Append(t.Context(), c.ID, uuid.New(), user("x")); !errors.Is(err, fault.NotFound) {
			t.Fatalf("an absent parent: %v", err)
		}
		if _, _, err := inTx.AppendChain(t.Context(), c.ID, uuid.New(), []tree.NewMessage{user("x")}); !errors.Is(err, fault.NotFound) {
			t.Fatalf("an absent parent: %v", err)
		}
		chain := must3(inTx.AppendChain(t.Context(), c.ID, m.ID, []tree.NewMessage{user("x"), user("y")}))(t)
		finish(t, tx, commit)
		if _, err := s.Message(t.Context(), c.ID, chain[1].ID); (err == nil) != commit {
			t.Errorf("committed %t, and reading it gives %v", commit, err)
		}
	}
}

// Writers of every kind on one conversation at once: what was acknowledged is
// there once, under its parent, and siblings count without gaps.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(8))
	s := tree.New(pool)
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	var (
		mu    sync.Mutex
		acked = map[uuid.UUID]uuid.UUID{} // message → parent
	)
	ack := func(ms ...tree.Message) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range ms {
			acked[m.ID] = m.ParentID
		}
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			tip := root.ID
			for i := range 10 {
				switch {
				case w%4 == 0 && i%5 == 4: // a chain under the root
					chain, _, err := s.AppendChain(t.Context(), c.ID, root.ID, []tree.NewMessage{user("chain"), user("chain")})
					if err != nil {
						t.Error(err)
						return
					}
					ack(chain...)
				case w%4 == 1 && i%5 == 4: // append and prune again
					m, _, err := s.Append(t.Context(), c.ID, root.ID, user("short-lived"))
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := s.Prune(t.Context(), c.ID, m.ID); err != nil {
						t.Error(err)
						return
					}
				default: // the same append twice at once, as an impatient client sends it
					n := tree.NewMessage{ID: uuid.New(), Body: said(tree.RoleUser, "x")}
					var twice sync.WaitGroup
					for range 2 {
						twice.Go(func() {
							m, _, err := s.Append(t.Context(), c.ID, tip, n)
							if err != nil {
								t.Error(err)
								return
							}
							ack(m)
						})
					}
					twice.Wait()
					if i%3 > 0 {
						tip = n.ID
					}
				}
			}
		})
	}
	wg.Wait()
	siblings := map[uuid.UUID]int{}
	highest := map[uuid.UUID]int{}
	nodes := 0
	for _, n := range gather(t, s.Tree(t.Context(), c.ID, 0)) {
		nodes++
		siblings[n.ParentID]++
		highest[n.ParentID] = max(highest[n.ParentID], n.Index)
		if parent, ok := acked[n.ID]; n.ID != root.ID && (!ok || parent != n.ParentID) {
			t.Errorf("%s under %s: acknowledged %t under %s", n.ID, n.ParentID, ok, parent)
		}
	}
	if nodes != len(acked)+1 {
		t.Errorf("%d nodes, and %d were acknowledged", nodes, len(acked)+1)
	}
	for parent, count := range siblings {
		if highest[parent] != count {
			t.Errorf("%s has %d children with indexes up to %d", parent, count, highest[parent])
		}
	}
}

// Appends below a message that is pruned meanwhile are stored and go with it,
// or find their parent gone; none is left over.
func TestPruneAgainstAppend(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(12))
	s := tree.New(pool)
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	for range 6 {
		doomed := mustAppend(t, s, c.ID, root.ID, user("doomed"))
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if _, _, err := s.Append(t.Context(), c.ID, doomed.ID, user("late")); err != nil && !errors.Is(err, fault.NotFound) {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if _, err := s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{HeadID: doomed.ID}); err != nil && !errors.Is(err, fault.Invalid) {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := s.Prune(t.Context(), c.ID, doomed.ID); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		got := must(s.Conversation(t.Context(), c.ID))(t)
		if got.HeadID != root.ID {
			t.Fatalf("the head is %s after its subtree was pruned, want %s", got.HeadID, root.ID)
		}
	}
	if got := counts(t, s, c.ID); !strings.HasPrefix(got, "1 nodes") {
		t.Errorf("left over: %s", got)
	}
}

// A transaction that is the caller's keeps its settings, whether a method
// succeeds or fails.
func TestCallersTransactionKeepsItsSettings(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.StatementTimeout(7*time.Minute))
	all := tree.New(pool)
	c := newConversation(t, all)
	root := mustAppend(t, all, c.ID, uuid.Nil, user("root"))
	m := mustAppend(t, all, c.ID, root.ID, user("tip"))
	taken := newConversation(t, all)
	for _, own := range []string{"", "set local statement_timeout = '4321ms'", "set local statement_timeout = 0"} {
		for name, call := range map[string]func(context.Context, *tree.Store) error{
			"a fork": func(ctx context.Context, s *tree.Store) error {
				return third(s.Fork(ctx, c.ID, m.ID, tree.NewConversation{}))
			},
			"a fork that is refused": func(ctx context.Context, s *tree.Store) error {
				if _, _, err := s.Fork(ctx, c.ID, m.ID, tree.NewConversation{ID: taken.ID}); !errors.Is(err, fault.Conflict) {
					return errors.Join(errors.New("the fork was not refused"), err)
				}
				return nil
			},
			"an import": func(ctx context.Context, s *tree.Store) error {
				return second(s.Import(ctx, bundleOf(uuid.New(), 1000)))
			},
			"an import that is refused": func(ctx context.Context, s *tree.Store) error {
				b := bundleOf(uuid.New(), 1500)
				b.Nodes[len(b.Nodes)-1].Body = nil
				if _, err := s.Import(ctx, b); !errors.Is(err, fault.Invalid) {
					return errors.Join(errors.New("the import was not refused"), err)
				}
				return nil
			},
			"a prune":  func(ctx context.Context, s *tree.Store) error { return second(s.Prune(ctx, c.ID, m.ID)) },
			"a delete": func(ctx context.Context, s *tree.Store) error { return s.DeleteConversation(ctx, c.ID) },
		} {
			tx := must(pool.Begin(t.Context()))(t)
			must(tx.Exec(t.Context(), own))(t)
			before := settings(t, tx)
			if err := call(t.Context(), tree.New(tx)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if after := settings(t, tx); after != before {
				t.Errorf("%s, after %q: the settings changed from %s to %s", name, own, before, after)
			}
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

// An import that waits for a conversation's lock until the database ends the
// wait ends in the database's error, and not in one that says something of the
// id.
func TestImportKeepsTheDatabasesErrors(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	c := newConversation(t, s)
	holder := must(pool.Begin(t.Context()))(t)
	defer func() { _ = holder.Rollback(context.Background()) }()
	noError(t, tree.New(holder).Lock(t.Context(), c.ID))
	for setting, code := range map[string]string{"lock_timeout": "55P03", "statement_timeout": "57014"} {
		tx := must(pool.Begin(t.Context()))(t)
		must(tx.Exec(t.Context(), "set local "+setting+" = '50ms'"))(t)
		_, err := tree.New(tx).Import(t.Context(), bundleOf(c.ID, 1))
		if got := sqlState(err); got != code {
			t.Errorf("%s: %v, SQLSTATE %q; want %s", setting, err, got, code)
		}
		if fault.Refused(err) || !errors.Is(err, fault.Timeout) {
			t.Errorf("%s: the error is of kind %q", setting, fault.Of(err).Kind)
		}
		noError(t, tx.Rollback(t.Context()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Import(ctx, bundleOf(c.ID, 1)); !errors.Is(err, context.DeadlineExceeded) || fault.Refused(err) {
		t.Errorf("a deadline: %v", err)
	}
}

// An import may store much at a time, which takes longer than other statements
// may.
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
	if got, err := s.Import(t.Context(), bundleOf(uuid.New(), 1000)); err != nil || got[0].Added != 1000 {
		t.Errorf("%v, %v", got, err)
	}
	if err := <-released; err != nil {
		t.Error(err)
	}
}

// sqlState is the code of the database's error, "" where it is none.
func sqlState(err error) string {
	var told *pgconn.PgError
	if errors.As(err, &told) {
		return told.Code
	}
	return ""
}
