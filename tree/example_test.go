package tree_test

import (
	"context"
	"fmt"
	"log"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// An edit and a regeneration, and the branches that they leave.
func Example() {
	ctx := context.Background()
	pool, done := dbtest.Example() // in a program: db.Open, and migrate.Up once
	defer done()
	store := tree.New(pool)

	say := func(conversation, parent uuid.UUID, role tree.Role, text string) uuid.UUID {
		m, err := store.Append(ctx, conversation, parent, tree.Text(role, text))
		if err != nil {
			log.Fatal(err)
		}
		return m.ID
	}
	c, _, err := store.CreateConversation(ctx, tree.NewConversation{Title: "Growth"})
	if err != nil {
		log.Fatal(err)
	}
	question := say(c.ID, uuid.Nil, tree.RoleUser, "What grows fastest?")
	answer := say(c.ID, question, tree.RoleAssistant, "Bamboo.")
	again := say(c.ID, question, tree.RoleAssistant, "Giant kelp.")     // a regeneration
	edited := say(c.ID, uuid.Nil, tree.RoleUser, "What grows slowest?") // an edit

	for i, head := range []uuid.UUID{answer, again, edited} {
		if i > 0 {
			fmt.Println("--")
		}
		page, err := store.Transcript(ctx, c.ID, head, tree.Paging{})
		if err != nil {
			log.Fatal(err)
		}
		for _, m := range page.Data {
			fmt.Printf("%s (%d of %d)\n", chat.Read(m.Body).Text(), m.Siblings.Index, m.Siblings.Count)
		}
	}
	// Output:
	// What grows fastest? (1 of 2)
	// Bamboo. (1 of 2)
	// --
	// What grows fastest? (1 of 2)
	// Giant kelp. (2 of 2)
	// --
	// What grows slowest? (2 of 2)
}
