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
	const waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
	for waiting, deadline := 0, time.Now().Add(30*time.Second); waiting == 0 && len(done) == 0; time.Sleep(time.Millisecond) {
		if err := pool.QueryRow(t.Context(), waits).Scan(&waiting); err != nil || time.Now().After(deadline) {
			t.Fatalf("the call neither waits nor ends: %v", err)
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
