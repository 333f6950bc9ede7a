package search_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
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
	c := check.Must3(s.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	return c.ID
}

// chain appends messages below parent, each below the one before.
func chain(t testing.TB, s *tree.Store, conversationID, parent uuid.UUID, messages ...tree.NewMessage) (ids []uuid.UUID) {
	t.Helper()
	for len(messages) > 0 {
		some := messages[:min(len(messages), tree.MaxChain)]
		stored := check.Must(s.AppendChain(t.Context(), conversationID, parent, some))(t)
		for _, m := range stored.Messages {
			ids = append(ids, m.ID)
		}
		parent, messages = ids[len(ids)-1], messages[len(some):]
	}
	return ids
}

func user(text string) tree.NewMessage { return said(tree.RoleUser, text) }

// users are so many messages of a user's.
func users(n int, text func(i int) string) (all []tree.NewMessage) {
	for i := range n {
		all = append(all, user(text(i)))
	}
	return all
}

func mustAppend(t testing.TB, s *tree.Store, conversationID, parent uuid.UUID, m tree.NewMessage) tree.Message {
	t.Helper()
	return check.Must(s.Append(t.Context(), conversationID, parent, m))(t).Message
}

func second[T any](_ T, err error) error { return err }
