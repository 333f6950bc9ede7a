package openai_test

import (
	"sync"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/tree"
)

// An update of a conversation's pairs, and items that give it a title, come at the
// same moment as a native client's change of the same: what that one said stays.
func TestNativeChangeMeanwhile(t *testing.T) {
	t.Parallel()
	title := "Woods"
	for name, test := range map[string]struct {
		path, body string
		meanwhile  tree.ConversationUpdate
		title      string
		metadata   string
	}{
		"metadata": {"", `{"metadata":{"topic":"woods"}}`, tree.ConversationUpdate{Metadata: []byte(`{"topic":"trees","colours":["red"]}`)}, "", `{"colours":["red"],"topic":"woods"}`},
		"title":    {"/items", `{"items":[` + says("user", "Good morning") + `]}`, tree.ConversationUpdate{Title: &title}, title, "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := dbtest.New(t)
			store := tree.New(pool).ForTenant("acme")
			c, _, err := store.CreateConversation(t.Context(), tree.NewConversation{})
			if err != nil {
				t.Fatal(err)
			}
			var once sync.Once
			a := newAPIOn(t, dbtest.AfterQuery(t, pool, "GetConversation", func() {
				once.Do(func() {
					if _, err := store.UpdateConversation(t.Context(), c.ID, test.meanwhile); err != nil {
						t.Error(err)
					}
				})
			}), openai.Recognition{})
			a.ask(200, "acme", "POST", "/conversations/"+openai.ConversationID(c.ID)+test.path, test.body)
			if c, err = store.Conversation(t.Context(), c.ID); err != nil || c.Title != test.title || string(c.Metadata) != test.metadata {
				t.Errorf("the title is %q, and the metadata %s, %v; want %q and %s", c.Title, c.Metadata, err, test.title, test.metadata)
			}
		})
	}
}
