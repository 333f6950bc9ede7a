package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
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

// What the examples show, on a database of the test's own: the handler stands in
// a program's mux, requests and the program see the same conversations, and
// nothing is left running when it is closed.
func TestExample(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, err := app.Open(ctx, app.Config{Database: app.DatabaseConfig{URL: dbtest.URL(t)}, Version: "v1.2.3"})
	check.NoError(t, err)
	closed := false
	defer func() {
		if !closed {
			c.Close(context.WithoutCancel(ctx))
		}
	}()
	for range 2 {
		check.NoError(t, c.Start(ctx))
	}
	mux := http.NewServeMux()
	mux.Handle("/", c)
	mux.HandleFunc("/garden", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "my own page") })
	web := httptest.NewServer(mux)
	defer web.Close()

	check.NoError(t, say(ctx, c, "What grows fastest?"))
	for path, want := range map[string]string{
		"/garden":           "my own page",
		"/v1/conversations": `"title":"Growth"`,
		"/healthz":          "v1.2.3",
		"/readyz":           "",
		"/metrics":          "coppice_pool_max_connections 20\n",
	} {
		if body := get(t, web.URL+path); !bytes.Contains(body, []byte(want)) {
			t.Errorf("%s: %s lacks %q", path, body, want)
		}
	}
	wrong := json.RawMessage(`{"keep_ratio":5}`)
	if _, _, err := c.Store().CreateConversation(ctx, tree.NewConversation{Settings: wrong}); !errors.Is(err, fault.Invalid) {
		t.Errorf("settings that requests can't store: %v", err)
	}
	key, _, err := c.Keys().Create(ctx, "other", "a phone")
	if err != nil || key.TenantID != "other" {
		t.Errorf("%+v, %v", key, err)
	}
	if n := c.Replies().Stats().Running; n != 0 || c.Database() == nil {
		t.Errorf("%d replies run", n)
	}
	web.Close()
	closed = true
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Store().CreateConversation(ctx, tree.NewConversation{}); err == nil {
		t.Error("a conversation is made after the end")
	}
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	res, err := http.Get(url)
	check.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%s: status %d, %v", url, res.StatusCode, err)
	}
	return body
}
