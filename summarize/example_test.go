package summarize_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A branch before and after a compaction by the offline digest, as no model is set up.
func Example() {
	ctx := context.Background()
	pool, done := dbtest.Example() // in a program: db.Open, and migrate.Up once
	defer done()
	store := tree.New(pool)
	contexts, err := summarize.New(store, summarize.Config{})
	if err != nil {
		log.Fatal(err)
	}

	// The window is small, so that a short talk is worth a summary.
	c, _, err := store.CreateConversation(ctx, tree.NewConversation{Settings: json.RawMessage(
		`{"max_context_tokens": 2000, "reserved_tokens": 200, "min_fold_tokens": 100, "keep_user_ratio": 0, "compaction": "manual"}`)})
	if err != nil {
		log.Fatal(err)
	}
	talk := []tree.NewMessage{{Message: chat.Read([]byte(`{"role":"system","content":"You help to plan an orchard."}`))}}
	for i := range 6 {
		for _, role := range []string{"user", "assistant"} {
			text := fmt.Sprintf("Tree %d. %s", i+1, strings.Repeat("It stands on clay, and wants light. ", 8))
			body, err := json.Marshal(map[string]string{"role": role, "content": text})
			if err != nil {
				log.Fatal(err)
			}
			talk = append(talk, tree.NewMessage{Message: chat.Read(body)})
		}
	}
	if _, err := store.AppendChain(ctx, c.ID, uuid.Nil, talk); err != nil {
		log.Fatal(err)
	}

	look := func() {
		read, err := contexts.Context(ctx, c.ID, uuid.Nil, summarize.Window{}) // uuid.Nil is the active head
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d messages for the model: prefix %d, folded %d, tail %d, summary: %t\n",
			len(read.Messages), read.Counts.Prefix, read.Counts.Folded, read.Counts.Tail, read.Summary != nil)
	}
	look()
	record, err := contexts.Compact(ctx, c.ID, uuid.Nil, summarize.TriggerRequest, &summarize.Demand{KeepRecentMessages: 4})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(record.Outcome, "by", record.Model)
	look()
	// Output:
	// 13 messages for the model: prefix 1, folded 0, tail 12, summary: false
	// saved by offline-digest
	// 7 messages for the model: prefix 1, folded 8, tail 4, summary: true
}

// headlines takes what was said first for its summary.
type headlines struct{}

func (headlines) Summarize(_ context.Context, in summarize.Input) (summarize.Result, error) {
	_, said, _ := strings.Cut(in.Transcript(), "\n") // after the day
	role, rest, _ := strings.Cut(said, "\n")
	line, _, _ := strings.Cut(rest, "\n")
	return summarize.Result{Text: fmt.Sprintf("The %s began: %s", strings.Trim(role, ":"), strings.Trim(line, "| ")), Model: "headlines", Taken: len(in.Fold)}, nil
}

// A summarizer of the program's own.
func ExampleSummarizer() {
	ctx := context.Background()
	pool, done := dbtest.Example()
	defer done()
	store := tree.New(pool)
	contexts, err := summarize.New(store, summarize.Config{Summarizer: headlines{}})
	if err != nil {
		log.Fatal(err)
	}
	c, _, err := store.CreateConversation(ctx, tree.NewConversation{})
	if err != nil {
		log.Fatal(err)
	}
	var talk []tree.NewMessage
	for range 6 {
		talk = append(talk, tree.Text(tree.RoleUser, "Which trees can be coppiced, and how often?"), tree.Text(tree.RoleAssistant, strings.Repeat("Hazel, every seven years. ", 40)))
	}
	if _, err := store.AppendChain(ctx, c.ID, uuid.Nil, talk); err != nil {
		log.Fatal(err)
	}
	record, err := contexts.Compact(ctx, c.ID, uuid.Nil, summarize.TriggerRequest, &summarize.Demand{KeepRecentMessages: 4})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(record.Outcome, "by", record.Model)
	// Output: saved by headlines
}
