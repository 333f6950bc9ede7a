package app_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A whole Coppice in a program's own process, beside the program's own pages.
func Example() {
	ctx := context.Background()
	c, err := app.Open(ctx, app.Config{Database: app.DatabaseConfig{DataDir: "/var/lib/garden"}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)
	if err := c.Start(ctx); err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", c)
	mux.HandleFunc("/garden", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "my own page") })
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", mux))
}

// The models of a server on the same machine write summaries and answer, and the
// program talks to the parts without HTTP.
func Example_withoutHTTP() {
	ctx := context.Background()
	c, err := app.Open(ctx, app.Config{
		Database: app.DatabaseConfig{URL: "postgres://localhost/garden"},
		Models: app.Models{
			BaseURL: "http://localhost:11434/v1", Windows: map[string]int{"llama3.2": 131_072},
			Summaries: []string{"llama3.2"}, Replies: []string{"llama3.2"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)
	if err := say(ctx, c, "What grows fastest?"); err != nil {
		log.Fatal(err)
	}
}

// say appends a message to a new conversation, and prints what a model would
// read.
func say(ctx context.Context, c *app.Coppice, text string) error {
	conversation, _, err := c.Store().CreateConversation(ctx, tree.NewConversation{Title: "Growth"})
	if err != nil {
		return err
	}
	m, err := c.Store().Append(ctx, conversation.ID, uuid.Nil, tree.Text(tree.RoleUser, text))
	if err != nil {
		return err
	}
	read, err := c.Contexts().Context(ctx, conversation.ID, m.ID, summarize.Window{})
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", read.Messages)
	return nil
}
