package tree_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A caller's transaction: what is appended in it is there when it commits, is
// gone when it doesn't, and a refused append doesn't break it.
func TestInTransaction(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	c := newConversation(t, s)
	for _, commit := range []bool{true, false} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inTx := tree.New(tx)
		m := mustAppend(t, inTx, c.ID, uuid.Nil, user("in a transaction"))
		if _, _, err := inTx.Append(t.Context(), c.ID, uuid.New(), user("x")); !errors.Is(err, fault.NotFound) {
			t.Fatalf("an absent parent: %v", err)
		}
		if _, _, err := inTx.AppendChain(t.Context(), c.ID, uuid.New(), []tree.NewMessage{user("x")}); !errors.Is(err, fault.NotFound) {
			t.Fatalf("an absent parent: %v", err)
		}
		chain, _, err := inTx.AppendChain(t.Context(), c.ID, m.ID, []tree.NewMessage{user("x"), user("y")})
		if err != nil {
			t.Fatal(err)
		}
		if commit {
			err = tx.Commit(t.Context())
		} else {
			err = tx.Rollback(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Message(t.Context(), c.ID, chain[1].ID); (err == nil) != commit {
			t.Errorf("committed %t, and reading it gives %v", commit, err)
		}
	}
}

// Writers of every kind on one conversation at once: what was acknowledged is
// there once, under its parent, and siblings count without gaps.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(16))
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
	for w := range 16 {
		wg.Go(func() {
			tip := root.ID
			for i := range 20 {
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
	for n, err := range s.Tree(t.Context(), c.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
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
	for range 20 {
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
		got, err := s.Conversation(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.HeadID != root.ID {
			t.Fatalf("the head is %s after its subtree was pruned, want %s", got.HeadID, root.ID)
		}
	}
	if got := counts(t, s, c.ID); !strings.HasPrefix(got, "1 nodes") {
		t.Errorf("left over: %s", got)
	}
}
