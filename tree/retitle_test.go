package tree_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// A title is replaced only where it still is the one that was seen, and only then
// anything is told.
func TestRetitle(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c, _, err := s.CreateConversation(t.Context(), tree.NewConversation{Title: "a"})
	check.NoError(t, err)
	changes := func() int64 {
		t.Helper()
		n := check.Must(s.ChangeCount(t.Context(), c.ID))(t)
		return n
	}
	for _, tt := range []struct {
		replaced, title, want string
		done                  bool
	}{
		{"", "b", "a", false},
		{"b", "c", "a", false},
		{"a", "b", "b", true},
		{"b", "b", "b", false},
		{"b", "", "", true},
		{"", "Trees", "Trees", true},
	} {
		before := changes()
		done := check.Must(s.Retitle(t.Context(), c.ID, tt.replaced, tt.title))(t)
		got := check.Must(s.Conversation(t.Context(), c.ID))(t)
		if got.Title != tt.want || done != tt.done || (changes() == before+1) != tt.done {
			t.Errorf("%+v: %q, done %v, %d changes", tt, got.Title, done, changes()-before)
		}
	}
	if _, err := s.ForTenant("other").Retitle(t.Context(), c.ID, "Trees", "b"); fault.Of(err).Kind != fault.NotFound {
		t.Errorf("another tenant: %v", err)
	}
	if _, err := s.Retitle(t.Context(), c.ID, "Trees", "a\nb"); fault.Of(err).Kind != fault.Invalid {
		t.Errorf("a title of two lines: %v", err)
	}
}

// The calls for titles are counted where they are calls. What a client wrote in
// their place counts nothing and breaks nothing.
func TestUsageOfTitles(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	for _, metadata := range []string{
		`{"title_calls":[{"model":"one","prompt_tokens":30,"completion_tokens":3},{"model":"two","prompt_tokens":20,"completion_tokens":2,"reasoning_tokens":1}]}`,
		`{"title_calls":[{"model":"one","prompt_tokens":10}]}`,
		`{"title_calls":null}`, `{"title_calls":"x"}`, `{"title_calls":{"model":"m"}}`, `{"title_calls":[1,"x",null,[],{"model":7},{"prompt_tokens":3}]}`,
		`{"title_calls":[{"model":"two","prompt_tokens":"many","completion_tokens":-1}]}`,
	} {
		mustAppend(t, s, c.ID, uuid.Nil, tree.NewMessage{Message: chat.Read(said(tree.RoleAssistant, "Yes.")), Metadata: []byte(metadata)})
	}
	used, err := s.Usage(t.Context(), c.ID)
	if want := "[{one 2 40 3 0} {two 2 20 2 1}]"; err != nil || fmt.Sprint(used.Titles) != want || used.Replies != nil || used.Compactions != nil {
		t.Errorf("%+v, %v; want titles %s", used, err, want)
	}
	if used, err = s.ForTenant("other").Usage(t.Context(), c.ID); fault.Of(err).Kind != fault.NotFound {
		t.Errorf("another tenant: %+v, %v", used, err)
	}
}
