package tree_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// TestFindCall holds that the newest message is found that makes a call, in this
// tenant and conversation.
func TestFindCall(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c, other := newConversation(t, s), newConversation(t, s)
	call := func(conversation uuid.UUID, id string) tree.Message {
		return mustAppend(t, s, conversation, uuid.Nil, raw(`{"role":"assistant","content":null,"tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]}`))
	}
	call(c.ID, "a")
	want := call(c.ID, "a")
	mustAppend(t, s, c.ID, uuid.Nil, raw(`{"role":"assistant","content":"a","tool_calls":null}`))
	call(other.ID, "a")
	call(c.ID, "ab")
	if got, err := s.FindCall(t.Context(), c.ID, "a"); err != nil || got != want.ID {
		t.Errorf("%s, %v; want %s", got, err, want.ID)
	}
	if _, err := s.FindCall(t.Context(), c.ID, "b"); !errors.Is(err, fault.NotFound) {
		t.Errorf("a call that nobody made: %v", err)
	}
	if _, err := s.ForTenant("another").FindCall(t.Context(), c.ID, "a"); !errors.Is(err, fault.NotFound) {
		t.Errorf("another tenant's: %v", err)
	}
}
