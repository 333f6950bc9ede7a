package tree

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// What is stored is counted once, by its bytes: alone, as a path, as a fork, and as a file.
func TestCount(t *testing.T) {
	t.Parallel()
	ctx, got := t.Context(), ""
	s := New(dbtest.New(t), WithCount(func(tenant string, messages, bytes int) { got += fmt.Sprint(tenant, " ", messages, " ", bytes, "; ") }))
	c, _, err := s.CreateConversation(ctx, NewConversation{})
	check.NoError(t, err)
	m := NewMessage{ID: uuid.Must(uuid.NewV7()), Message: chat.Read([]byte(`{"role":"user","content":"a"}`))} // 29 bytes
	for range 2 {
		check.Must(s.Append(ctx, c.ID, uuid.Nil, m))(t)
	}
	check.Must(s.AppendChain(ctx, c.ID, m.ID, []NewMessage{{Message: m.Message}, {Message: m.Message}}))(t)
	_, _, err = s.Fork(ctx, c.ID, m.ID, NewConversation{})
	check.NoError(t, err)
	for range 2 {
		_, _, err = s.AddAttachment(ctx, "a.txt", []byte("file"))
		check.NoError(t, err)
	}
	if want := "default 1 29; default 2 58; default 1 29; default 0 4; "; got != want {
		t.Errorf("counted %s, want %s", got, want)
	}
}
