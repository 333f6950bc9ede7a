package transfer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/tree"
)

// A file comes in, which repairs what is not sound. It comes in again, which
// adds nothing. A branch goes out as Markdown.
func Example() {
	ctx := context.Background()
	pool, done := dbtest.Example() // in a program: db.Open, and migrate.Up once
	defer done()
	store := tree.New(pool)

	const file = `{"title": "Glue", "created_at": "2026-01-05T08:00:00Z", "messages": [
		{"role": "user", "content": "How long does paste keep?"},
		{"role": "assistant", "content": ""},
		{"role": "assistant", "content": "A week in the cold."}]}`
	for range 2 {
		report, err := transfer.Import(ctx, transfer.Into(store), strings.NewReader(file), transfer.Options{PublicIDs: true}) // so that the output is the same everywhere
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %d messages, %d added, %d already there\n", report.Format, report.Messages, report.Added, report.Present)
		for _, note := range report.Notes {
			fmt.Println(note.Action, note.Kind)
		}
	}

	found, err := store.FindConversation(ctx, "Glue")
	if err != nil {
		log.Fatal(err)
	}
	form, _ := transfer.FormNamed("markdown")
	if err := form.Write(ctx, store, found[0], uuid.Nil, os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// messages: 2 messages, 2 added, 0 already there
	// left out empty
	// repaired time
	// messages: 2 messages, 0 added, 2 already there
	// left out empty
	// repaired time
	// # Glue
	//
	// Conversation `c6e472c9-5513-5d1c-9f66-75e4f49a605b`, begun 2026-01-05 08:00:00 UTC
	//
	// ## User · 2026-01-05 08:00:00 UTC
	//
	// How long does paste keep?
	//
	// ## Assistant · 2026-01-05 08:00:00 UTC
	//
	// A week in the cold.
}
