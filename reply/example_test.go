package reply_test

import (
	"context"
	"fmt"
	"log"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A question and its answer as it streams, and the same question answered
// again. No model is set up, so the offline one answers.
func Example() {
	ctx := context.Background()
	pool, done := dbtest.Example() // in a program: db.Open, and migrate.Up once
	defer done()
	store := tree.New(pool)
	contexts, err := summarize.New(store, summarize.Config{})
	if err != nil {
		log.Fatal(err)
	}
	replies, err := reply.New(reply.Config{Store: store, Contexts: contexts})
	if err != nil {
		log.Fatal(err)
	}
	defer replies.Close(ctx)
	c, _, err := store.CreateConversation(ctx, tree.NewConversation{Title: "Growth"})
	if err != nil {
		log.Fatal(err)
	}

	// Without a HeadID, the active head is meant. The question is appended first.
	question := tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":"What grows fastest?"}`))}
	answer := stream(ctx, replies, reply.Request{ConversationID: c.ID, Messages: []tree.NewMessage{question}})
	again := stream(ctx, replies, reply.Request{ConversationID: c.ID, HeadID: answer.ParentID})
	fmt.Println("the second stands beside the first:", again.ParentID == answer.ParentID)
	// Output:
	// I am the offline model: no language model is set up, so nobody understood this. I was given 1 message. You said: “What grows fastest?”
	// completed, 1 of 1
	// I am the offline model: no language model is set up, so nobody understood this. I was given 1 message. You said: “What grows fastest?”
	// completed, 2 of 2
	// the second stands beside the first: true
}

// stream prints the answer piece by piece, and gives the stored message.
func stream(ctx context.Context, replies *reply.Service, req reply.Request) *tree.Message {
	r, _, err := replies.Start(ctx, req)
	if err != nil {
		log.Fatal(err)
	}
	for last := 0; ; {
		events, err := r.Next(ctx, last)
		if err != nil {
			log.Fatal(err)
		}
		for _, e := range events {
			switch {
			case e.Delta != nil:
				fmt.Print(e.Delta.Content)
			case e.End != nil:
				fmt.Printf("\n%s, %d of %d\n", e.End.Status, e.End.Message.Siblings.Index, e.End.Message.Siblings.Count)
				return e.End.Message
			}
			last = e.ID
		}
	}
}
