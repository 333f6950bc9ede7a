package openai_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestDeletedItemOfABranchThatWentOn holds that the active head isn't moved back where
// somebody says something while the last item is deleted.
func TestDeletedItemOfABranchThatWentOn(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, native := a.conversation(`{"items":[` + says("user", "q") + `,` + says("assistant", "a") + `]}`)
	last := a.items(id, "?limit=1").Data[0].ID
	c, err := a.store.ForTenant("acme").Conversation(t.Context(), native)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := a.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	later, _, err := tree.New(tx).ForTenant("acme").Append(t.Context(), native, c.HeadID, tree.NewMessage{Body: json.RawMessage(`{"role":"user","content":"later"}`)})
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		status int
		got    string
	}
	answered := make(chan answer, 1)
	go func() {
		status, got, _ := a.send("acme", "DELETE", "/conversations/"+id+"/items/"+last, "")
		answered <- answer{status, got}
	}()
	a.eventually(func() bool { return dbtest.Waiting(t, a.pool) > 0 })
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is := <-answered; is.status != 409 || !strings.Contains(is.got, "changed_meanwhile") {
		t.Errorf("%d %s", is.status, is.got)
	}
	if c, err = a.store.ForTenant("acme").Conversation(t.Context(), native); err != nil || c.HeadID != later.ID {
		t.Errorf("the head is %s, %v; want %s", c.HeadID, err, later.ID)
	}
	if got := a.items(id, "?order=asc").says(); got != "user:q assistant:a user:later" {
		t.Errorf("the items are %s", got)
	}
}
