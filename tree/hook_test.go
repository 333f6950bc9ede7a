package tree_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// A told hook counts what it is told after commits.
type told struct {
	wants             bool
	stored, committed int
}

func (h *told) Wants(uuid.UUID, uuid.UUID, int, int) bool        { return h.wants }
func (h *told) Stored(uuid.UUID, uuid.UUID, uuid.UUID, int, int) { h.stored++ }
func (h *told) Appended(context.Context, *tree.Store, tree.Message) (func(), error) {
	return func() { h.committed++ }, nil
}

// A hook is told of an append after its commit. In a caller's transaction it is
// told nothing, because nobody knows whether that is committed.
func TestHookIsToldAfterTheCommitOnly(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	h := &told{}
	store := tree.New(pool, tree.WithAppendHook(h))
	id := newConversation(t, store).ID
	for _, h.wants = range []bool{false, true} {
		*h = told{wants: h.wants}
		mustAppend(t, store, id, uuid.Nil, user("Kept."))
		if _, _, err := store.AppendChain(t.Context(), id, uuid.Nil, []tree.NewMessage{user("And"), user("these.")}); err != nil {
			t.Fatal(err)
		}
		if all := h.stored + h.committed; all != 2 || (h.committed == 2) != h.wants {
			t.Errorf("wanted %v: told %d times that something is stored, %d times that its transaction is committed", h.wants, h.stored, h.committed)
		}
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before := *h
		inTx := tree.New(tx, tree.WithAppendHook(h))
		mustAppend(t, inTx, id, uuid.Nil, user("Undone."))
		if _, _, err := inTx.AppendChain(t.Context(), id, uuid.Nil, []tree.NewMessage{user("So are"), user("these.")}); err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if *h != before {
			t.Errorf("wanted %v: the hook was told of what was undone: %+v, and before %+v", h.wants, *h, before)
		}
	}
}
