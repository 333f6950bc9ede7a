package tree_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// TestWritersWaitWithoutConnections has one conversation locked. Of those who want to
// write to it, one waits with a connection to the database and the others in memory;
// another conversation's append doesn't wait.
func TestWritersWaitWithoutConnections(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pool := dbtest.New(t)
	s, title := tree.New(pool), "Hazel"
	busy, other := newConversation(t, s).ID, newConversation(t, s).ID
	said := tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":"What is a coppice?"}`))}
	m, pruned := mustAppend(t, s, busy, uuid.Nil, said), mustAppend(t, s, busy, uuid.Nil, said)
	holder := must(pool.Begin(ctx))(t)
	check.NoError(t, tree.New(holder).Lock(ctx, busy))
	writers := []func() error{
		func() error { _, _, err := s.Fork(ctx, busy, m.ID, tree.NewConversation{}); return err },
		func() error { _, _, err := s.Fork(ctx, busy, m.ID, tree.NewConversation{}); return err },
		func() error { _, err := s.Append(ctx, busy, m.ID, said); return err },
		func() error { _, err := s.AppendChain(ctx, busy, m.ID, []tree.NewMessage{said, said}); return err },
		func() error {
			_, err := s.UpdateConversation(ctx, busy, tree.ConversationUpdate{Title: &title})
			return err
		},
		func() error { _, err := s.Prune(ctx, busy, pruned.ID); return err },
	}
	written := make(chan error, len(writers))
	for _, write := range writers {
		go func() { written <- write() }()
	}
	for s.WaitingWriters(busy) < len(writers)-1 || pool.Stat().AcquiredConns() < 2 {
		time.Sleep(time.Millisecond)
	}
	if n := pool.Stat().AcquiredConns(); n != 2 {
		t.Errorf("%d connections are in use, want the holder's and one writer's", n)
	}
	if _, err := s.Append(ctx, other, uuid.Nil, said); err != nil {
		t.Error(err)
	}
	check.NoError(t, holder.Rollback(ctx))
	for range writers {
		if err := <-written; err != nil {
			t.Error(err)
		}
	}
}
