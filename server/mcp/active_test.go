package mcp_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/server/mcp"
	"github.com/coppice-chat/coppice/tree"
)

// TestAppendBelowTheActiveHead holds that the head is the one at the moment of the
// append, not the one when the call came, and that the same call again adds nothing.
func TestAppendBelowTheActiveHead(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	c := a.piped("default")
	id := uuid.New()
	if _, _, err := a.store.CreateConversation(t.Context(), tree.NewConversation{ID: id}); err != nil {
		t.Fatal(err)
	}
	tx, err := a.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	first, _, err := tree.New(tx).Append(t.Context(), id, uuid.Nil, tree.NewMessage{Body: []byte(`{"role":"user","content":"first"}`)})
	if err != nil {
		t.Fatal(err)
	}
	said := m{"conversation_id": id.String(), "parent_id": "active", "messages": []m{
		{"id": uuid.NewString(), "role": "assistant", "content": "second"}, {"id": uuid.NewString(), "role": "user", "content": "third"},
	}}
	var appended, again mcp.Appended
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.call("append_messages", said, &appended)
	}()
	for dbtest.Waiting(t, a.pool) == 0 {
		select {
		case <-done:
			t.Fatal("the call doesn't wait")
		case <-time.After(time.Millisecond):
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
	second, err := a.store.Message(t.Context(), id, uuid.MustParse(appended.Messages[0]))
	if err != nil || second.ParentID != first.ID {
		t.Errorf("it stands below %s, %v; want %s", second.ParentID, err, first.ID)
	}
	if c.call("append_messages", said, &again); again.Created || again.HeadID != appended.HeadID {
		t.Errorf("again: %+v, and before %+v", again, appended)
	}
}
