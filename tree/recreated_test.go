package tree_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestImportOfWhatIsDeletedMeanwhile holds that an import which waits for a
// conversation that another writer then deletes makes it anew, and doesn't say that
// its id can't be had.
func TestImportOfWhatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	c := newConversation(t, s)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	other := tree.New(tx)
	if err := other.Lock(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	var imported []tree.Imported
	go func() {
		var err error
		imported, err = s.Import(t.Context(), bundleOf(c.ID, 2))
		done <- err
	}()
	untilWaiting(t, pool)
	if err := other.DeleteConversation(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(imported) != 1 || !imported[0].Created || imported[0].Added != len(bundleOf(c.ID, 2).Nodes) {
		t.Errorf("imported %+v", imported)
	}
	if got, err := s.Conversation(t.Context(), c.ID); err != nil || got.HeadID == uuid.Nil {
		t.Errorf("stored %+v, %v", got, err)
	}
}
