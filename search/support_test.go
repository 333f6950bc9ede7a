package search_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

// said is a message.
func said(role tree.Role, text string) tree.NewMessage {
	body, err := json.Marshal(map[string]any{"role": role, "content": text})
	if err != nil {
		panic(err)
	}
	return tree.NewMessage{Message: chat.Read(body)}
}

func conversation(t testing.TB, s *tree.Store) uuid.UUID {
	t.Helper()
	c, _, err := s.CreateConversation(t.Context(), tree.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// chain appends messages below parent, each below the one before.
func chain(t testing.TB, s *tree.Store, conversationID, parent uuid.UUID, messages ...tree.NewMessage) (ids []uuid.UUID) {
	t.Helper()
	for len(messages) > 0 {
		some := messages[:min(len(messages), tree.MaxChain)]
		stored, err := s.AppendChain(t.Context(), conversationID, parent, some)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range stored.Messages {
			ids = append(ids, m.ID)
		}
		parent, messages = ids[len(ids)-1], messages[len(some):]
	}
	return ids
}

func user(text string) tree.NewMessage { return said(tree.RoleUser, text) }

func mustAppend(t testing.TB, s *tree.Store, conversationID, parent uuid.UUID, m tree.NewMessage) tree.Message {
	t.Helper()
	return must(s.Append(t.Context(), conversationID, parent, m))(t).Message
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must gives a call's first result, and ends the test if the call failed.
func must[T any](got T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		noError(t, err)
		return got
	}
}

// must3 is must for a call of three results.
func must3[T, U any](got T, _ U, err error) func(testing.TB) T { return must(got, err) }

func second[T any](_ T, err error) error { return err }
