package tree_test

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A cursor of another length than lists make is refused by each of them.
func TestCursorOfAnotherLength(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	for _, length := range []int{1, 7, 8, 16, 23, 25, 32, 1000} {
		p := tree.Paging{Cursor: base64.RawURLEncoding.EncodeToString(make([]byte, length))}
		for name, list := range map[string]func() error{
			"Conversations": func() error { _, err := s.Conversations(t.Context(), "", p); return err },
			"Branches":      func() error { _, err := s.Branches(t.Context(), c.ID, p); return err },
			"Children":      func() error { _, err := s.Children(t.Context(), c.ID, root.ID, p); return err },
			"Transcript":    func() error { _, err := s.Transcript(t.Context(), c.ID, root.ID, p); return err },
			"Compactions":   func() error { _, err := s.Compactions(t.Context(), c.ID, p); return err },
			"Search":        func() error { _, err := s.Search(t.Context(), "x", c.ID, p); return err },
		} {
			if err := list(); !errors.Is(err, fault.Invalid) {
				t.Errorf("%s with a cursor of %d bytes: %v, want ErrInvalid", name, length, err)
			}
		}
	}
}
