package tree_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
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
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if err := open(tree.New(tx, tree.WithLimits(tree.Limits{Conversations: 1}))); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- call() }()
	for deadline := time.Now().Add(30 * time.Second); dbtest.Waiting(t, pool) == 0 && len(done) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the call neither waits nor ends")
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
		"an append": func(s *tree.Store) error {
			_, _, err := s.Append(t.Context(), c.ID, root.ID, user("more"))
			return err
		},
		"a chain": func(s *tree.Store) error {
			_, _, err := s.AppendChain(t.Context(), c.ID, root.ID, []tree.NewMessage{user("one"), user("two")})
			return err
		},
		"a pin": func(s *tree.Store) error { return second(s.PinMessage(t.Context(), c.ID, root.ID, true)) },
	} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		turns := func() (n int) {
			const held = `select count(*) from pg_locks where locktype = 'advisory' and classid = 1668246643 and granted
				and database = (select oid from pg_database where datname = current_database())`
			if err := pool.QueryRow(t.Context(), held).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if err := write(tree.New(tx)); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if n := turns(); n != 1 {
			t.Errorf("%s holds %d turns, want one until its transaction ends", name, n)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
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
	err := meanwhile(t, pool, func(s *tree.Store) error {
		_, _, err := s.CreateConversation(t.Context(), tree.NewConversation{})
		return err
	}, func() error {
		_, _, err := limited.CreateConversation(t.Context(), tree.NewConversation{})
		return err
	})
	if !errors.Is(err, fault.Full) {
		t.Errorf("a second conversation where one is the most: %v, want ErrLimit", err)
	}
}
