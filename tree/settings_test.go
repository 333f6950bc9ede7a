package tree_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// Settings that can't stand are refused wherever they are given, and those that
// stand already stay.
func TestCheckingSettings(t *testing.T) {
	t.Parallel()
	lax := tree.New(dbtest.New(t))
	refusal := fault.New(fault.Invalid, "invalid_setting", "settings.bad", "It can't stand.")
	store := lax.CheckingSettings(func(settings json.RawMessage) error {
		if string(settings) == `{"bad":1}` {
			return refusal
		}
		return nil
	}).ForTenant(lax.TenantID())
	bad, good := json.RawMessage(`{"bad":1}`), json.RawMessage(`{"good":1}`)
	ctx := t.Context()
	if _, _, err := store.CreateConversation(ctx, tree.NewConversation{Settings: bad}); !errors.Is(err, refusal) {
		t.Errorf("created: %v", err)
	}
	c, _, err := store.CreateConversation(ctx, tree.NewConversation{Settings: good})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.UpdateConversation(ctx, c.ID, tree.ConversationUpdate{Settings: bad}); !errors.Is(err, refusal) {
		t.Errorf("updated: %v", err)
	}
	m, _, err := store.Append(ctx, c.ID, [16]byte{}, tree.NewMessage{Body: json.RawMessage(`{"role":"user","content":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Fork(ctx, c.ID, m.ID, tree.NewConversation{Settings: bad}); !errors.Is(err, refusal) {
		t.Errorf("forked: %v", err)
	}
	// A store without the check may have let it in.
	if _, err := lax.UpdateConversation(ctx, c.ID, tree.ConversationUpdate{Settings: bad}); err != nil {
		t.Fatal(err)
	}
	title := "Hazel"
	if _, err := store.UpdateConversation(ctx, c.ID, tree.ConversationUpdate{Title: &title}); err != nil {
		t.Errorf("renamed: %v", err)
	}
	if fork, _, err := store.Fork(ctx, c.ID, m.ID, tree.NewConversation{}); err != nil || string(fork.Settings) != string(bad) {
		t.Errorf("forked with its source's settings: %s, %v", fork.Settings, err)
	}
}
