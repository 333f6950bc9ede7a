package tree_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestIDIsFreeAfterADelete holds that nobody is told that an id is taken whose
// conversation another writer deletes meanwhile: an import and a fork that waited for
// it make the conversation.
func TestIDIsFreeAfterADelete(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	source := newConversation(t, s)
	said := mustAppend(t, s, source.ID, uuid.Nil, user("said"))
	for name, call := range map[string]func(uuid.UUID) error{
		"import": func(id uuid.UUID) error {
			_, err := s.Import(t.Context(), bundleOf(id, 2))
			return err
		},
		"fork": func(id uuid.UUID) error {
			_, _, err := s.Fork(t.Context(), source.ID, said.ID, tree.NewConversation{ID: id})
			return err
		},
		"create": func(id uuid.UUID) error {
			_, _, err := s.CreateConversation(t.Context(), tree.NewConversation{ID: id, Title: "another"})
			return err
		},
	} {
		c := newConversation(t, s)
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(t.Context()) //nolint:errcheck // after a commit it does nothing
		other := tree.New(tx)
		if err := other.Lock(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- call(c.ID) }()
		if name == "import" {
			untilWaiting(t, pool)
		}
		if err := other.DeleteConversation(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil && name == "import" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
