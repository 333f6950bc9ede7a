package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// A span gives the last messages of a branch in order, whatever pages they lie
// on.
func TestSpan(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := tree.New(dbtest.New(t))
	c, _, err := store.CreateConversation(ctx, tree.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	const total = 2*tree.MaxPage + 300
	var ids []uuid.UUID
	for len(ids) < total {
		chain := make([]tree.NewMessage, min(tree.MaxChain, total-len(ids)))
		for i := range chain {
			body := fmt.Sprintf(`{"role": "user", "content": "%d"}`, len(ids)+i)
			chain[i] = tree.NewMessage{Body: json.RawMessage(body)}
		}
		parent := uuid.Nil
		if len(ids) > 0 {
			parent = ids[len(ids)-1]
		}
		stored, _, err := store.AppendChain(ctx, c.ID, parent, chain)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range stored {
			ids = append(ids, m.ID)
		}
	}
	for _, limit := range []int{0, 1, 7, tree.MaxPage, tree.MaxPage + 1, 2 * tree.MaxPage, total - 1, total, total + 1} {
		s, err := spanBranch(ctx, store, c.ID, ids[total-1], limit)
		if err != nil {
			t.Fatal(err)
		}
		want := ids
		if limit > 0 && limit < total {
			want = ids[total-limit:]
		}
		if whole := len(want) == total; (s.oldest.Next == "") != whole {
			t.Errorf("limit %d: next cursor %q", limit, s.oldest.Next)
		}
		n := 0
		for m, err := range s.messages() {
			if err != nil {
				t.Fatal(err)
			}
			if n >= len(want) || m.ID != want[n] {
				t.Fatalf("limit %d: message %d is %s", limit, n, m.ID)
			}
			n++
		}
		if n != len(want) {
			t.Errorf("limit %d: %d messages, want %d", limit, n, len(want))
		}
	}
}
