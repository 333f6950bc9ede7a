package tree_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// TestDeleteEmpty holds that a conversation with a message stays, in whichever
// order the message and the deletion come, and that a message which was told to be
// stored is there.
func TestDeleteEmpty(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	for name, test := range map[string]struct {
		append, commit bool // the transaction that comes first appends, or deletes; it commits
		want           bool // the conversation is there in the end
	}{
		"a message that is stored":            {append: true, commit: true, want: true},
		"a message that is not stored":        {append: true},
		"a deletion before a message":         {commit: true},
		"a deletion that is undone before it": {want: true},
	} {
		c := newConversation(t, s)
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		add := func(s *tree.Store) error {
			_, _, err := s.Append(t.Context(), c.ID, uuid.Nil, user("x"))
			return err
		}
		remove := func(s *tree.Store) error { _, err := s.DeleteEmpty(t.Context(), c.ID); return err }
		first, second := remove, add
		if test.append {
			first, second = add, remove
		}
		if err := first(tree.New(tx)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- second(s) }()
		untilWaiting(t, pool)
		if test.commit {
			err = tx.Commit(t.Context())
		} else {
			err = tx.Rollback(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		err = <-done
		if stored := err == nil && !test.append; stored && !test.want || err != nil && !errors.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
		got, err := s.Conversation(t.Context(), c.ID)
		if there := err == nil; there != test.want || there && got.HeadID == uuid.Nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	c := newConversation(t, s)
	if deleted, err := s.ForTenant("another").DeleteEmpty(t.Context(), c.ID); deleted || err != nil {
		t.Errorf("another tenant deletes it: %t, %v", deleted, err)
	}
	if deleted, err := s.DeleteEmpty(t.Context(), c.ID); !deleted || err != nil {
		t.Errorf("it is deleted: %t, %v", deleted, err)
	}
}

// untilWaiting waits until a statement waits for another one's lock.
func untilWaiting(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if dbtest.Waiting(t, pool) > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no statement waits for a lock")
		}
	}
}
