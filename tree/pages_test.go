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
	newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	mustAppend(t, s, c.ID, root.ID, user("a"))
	last := mustAppend(t, s, c.ID, root.ID, user("b"))
	mustAppend(t, s, c.ID, last.ID, user("c"))
	for name, list := range map[string]func(tree.Paging) (string, error){
		"Conversations": func(p tree.Paging) (string, error) {
			l, err := s.Conversations(t.Context(), tree.ConversationFilter{}, p)
			return l.Next, err
		},
		"Branches": func(p tree.Paging) (string, error) { l, err := s.Branches(t.Context(), c.ID, p); return l.Next, err },
		"Children": func(p tree.Paging) (string, error) {
			l, err := s.Children(t.Context(), c.ID, root.ID, p)
			return l.Next, err
		},
		"Transcript": func(p tree.Paging) (string, error) {
			l, err := s.Transcript(t.Context(), c.ID, last.ID, p)
			return l.Next, err
		},
	} {
		cursor, err := list(tree.Paging{Limit: 1})
		if err != nil || cursor == "" {
			t.Fatalf("%s: cursor %q, %v", name, cursor, err)
		}
		raw, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := list(tree.Paging{Cursor: cursor}); err != nil {
			t.Errorf("%s: its own cursor: %v", name, err)
		}
		for _, length := range []int{1, 7, 8, 16, 23, 25, 31, 33, 1000} {
			other := append(raw[:min(length, len(raw)):len(raw)], make([]byte, max(0, length-len(raw)))...)
			if _, err := list(tree.Paging{Cursor: base64.RawURLEncoding.EncodeToString(other)}); !errors.Is(err, fault.Invalid) {
				t.Errorf("%s with its cursor at %d bytes: %v, want fault.Invalid", name, length, err)
			}
		}
	}
}
