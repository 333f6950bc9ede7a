package tree_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// An edit and a regeneration, and the two branches that they leave. Run as a
// test because it needs a database.
func TestExampleBranches(t *testing.T) {
	t.Parallel()
	got := branches(t.Context(), tree.New(dbtest.New(t)))
	want := `What grows fastest? (1 of 2)
Bamboo. (1 of 2)
--
What grows fastest? (1 of 2)
Giant kelp. (2 of 2)
--
What grows slowest? (2 of 2)
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func branches(ctx context.Context, store *tree.Store) (out string) {
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	say := func(conversation, parent uuid.UUID, role tree.Role, text string) uuid.UUID {
		body, err := json.Marshal(map[string]any{"role": role, "content": text})
		check(err)
		m, _, err := store.Append(ctx, conversation, parent, tree.NewMessage{Body: body})
		check(err)
		return m.ID
	}
	c, _, err := store.CreateConversation(ctx, tree.NewConversation{Title: "Growth"})
	check(err)

	question := say(c.ID, uuid.Nil, tree.RoleUser, "What grows fastest?")
	answer := say(c.ID, question, tree.RoleAssistant, "Bamboo.")
	again := say(c.ID, question, tree.RoleAssistant, "Giant kelp.")     // a regeneration
	edited := say(c.ID, uuid.Nil, tree.RoleUser, "What grows slowest?") // an edit

	for i, head := range []uuid.UUID{answer, again, edited} {
		if i > 0 {
			out += "--\n"
		}
		page, err := store.Transcript(ctx, c.ID, head, tree.Paging{})
		check(err)
		for _, m := range page.Data {
			var said struct{ Content string }
			check(json.Unmarshal(m.Body, &said))
			out += fmt.Sprintf("%s (%d of %d)\n", said.Content, m.Siblings.Index, m.Siblings.Count)
		}
	}
	return out
}
