package summarize

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// TestContextsSayThatRecallIsOn holds that a context says that what is folded can
// be searched where the settings or the window want that, at the cost that it
// tells, and that a child's context begins with its parent's, byte for byte.
func TestContextsSayThatRecallIsOn(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	server := Defaults()
	server.Recall = true
	yes, no := true, false
	for name, test := range map[string]struct {
		server   Settings
		settings string
		window   Window
		says     bool
	}{
		"nothing":                            {Defaults(), "", Window{}, false},
		"the server":                         {server, "", Window{}, true},
		"the conversation":                   {Defaults(), `{"recall":true}`, Window{}, true},
		"the conversation, not the server":   {server, `{"recall":false}`, Window{}, false},
		"the window":                         {Defaults(), "", Window{Recall: &yes}, true},
		"the window, not the conversation's": {server, `{"recall":true}`, Window{Recall: &no}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := New(store, Config{Settings: test.server})
			check.NoError(t, err)
			c, _, err := store.CreateConversation(t.Context(), tree.NewConversation{Settings: json.RawMessage(test.settings)})
			check.NoError(t, err)
			var chain []tree.NewMessage
			for _, text := range []string{"One.", "Two.", "Three.", "Four."} {
				chain = append(chain, tree.NewMessage{Message: chat.Read(messageBody("user", text))})
			}
			stored := check.Must(store.AppendChain(t.Context(), c.ID, uuid.Nil, chain))(t)
			check.Must(store.AddSummary(t.Context(), c.ID, tree.NewSummary{
				AnchorID: stored.Messages[1].ID, Body: messageBody("user", "Numbers."), Range: tree.SummaryRange{LastSummarizedID: stored.Messages[1].ID, Model: "test"},
			}))(t)
			parent := check.Must(s.Context(t.Context(), c.ID, stored.Messages[2].ID, test.window))(t)
			child := check.Must(s.Context(t.Context(), c.ID, stored.Messages[3].ID, test.window))(t)
			if !slices.EqualFunc(parent.Messages, child.Messages[:len(parent.Messages)], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
				t.Errorf("the parent reads %s, the child %s", parent.Messages, child.Messages)
			}
			shown := string(child.Messages[0])
			if strings.Contains(shown, "function recall") != test.says || !strings.Contains(shown, "Numbers.") {
				t.Errorf("the summary is %s", shown)
			}
			sum := 0
			for _, p := range child.Parts() {
				sum += p.Tokens
			}
			if sum != child.Usage.ContextTokens {
				t.Errorf("%d tokens, %d of the parts", child.Usage.ContextTokens, sum)
			}
			if test.window.Recall == nil {
				e, err := s.Explain(t.Context(), c.ID, stored.Messages[3].ID)
				if err != nil || e.Usage.ContextTokens != child.Usage.ContextTokens || e.Settings.Recall != test.says {
					t.Errorf("explained are %+v, the context has %+v: %v", e.Usage, child.Usage, err)
				}
			}
			without := check.Must(s.Context(t.Context(), c.ID, stored.Messages[3].ID, Window{Recall: &no}))(t)
			want := 0
			if test.says {
				want = tokens.O200k().Count("The earlier messages themselves can be searched, where you have the function recall: call it for what the summary lacks.\n\n")
			}
			if got := child.Usage.ContextTokens - without.Usage.ContextTokens; got != want {
				t.Errorf("the sentence costs %d tokens, want %d", got, want)
			}
		})
	}
	if err := (&Service{settings: Defaults()}).CheckSettings(json.RawMessage(`{"recall":"yes"}`)); err == nil || !strings.Contains(err.Error(), "true or false") {
		t.Error(err)
	}
}
