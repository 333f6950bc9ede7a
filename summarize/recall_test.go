package summarize

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
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
		s := service(t, store, Config{Settings: test.server})
		c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{Settings: json.RawMessage(test.settings)}))(t)
		var chain []tree.NewMessage
		for _, text := range []string{"One.", "Two.", "Three.", "Four."} {
			chain = append(chain, tree.Text(tree.RoleUser, text))
		}
		stored := check.Must(store.AppendChain(t.Context(), c.ID, uuid.Nil, chain))(t).Messages
		check.Must(store.AddSummary(t.Context(), c.ID, tree.NewSummary{
			AnchorID: stored[1].ID, Body: messageBody("user", "Numbers."), Range: tree.SummaryRange{LastSummarizedID: stored[1].ID, Model: "test"},
		}))(t)
		parent := check.Must(s.Context(t.Context(), c.ID, stored[2].ID, test.window))(t)
		child := check.Must(s.Context(t.Context(), c.ID, stored[3].ID, test.window))(t)
		if !slices.EqualFunc(parent.Messages, child.Messages[:len(parent.Messages)], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Errorf("%s: the parent reads %s, the child %s", name, parent.Messages, child.Messages)
		}
		if shown := string(child.Messages[0]); strings.Contains(shown, "function recall") != test.says || !strings.Contains(shown, "Numbers.") {
			t.Errorf("%s: the summary is %s", name, shown)
		}
		sum := 0
		for _, p := range child.Parts() {
			sum += p.Tokens
		}
		without := check.Must(s.Context(t.Context(), c.ID, stored[3].ID, Window{Recall: &no}))(t)
		if cost := child.Usage.ContextTokens - without.Usage.ContextTokens; sum != child.Usage.ContextTokens || (cost > 20) != test.says || !test.says && cost != 0 {
			t.Errorf("%s: %d tokens, %d of the parts; the sentence costs %d", name, child.Usage.ContextTokens, sum, cost)
		}
		if test.window.Recall == nil {
			if e := check.Must(s.Explain(t.Context(), c.ID, stored[3].ID))(t); e.Usage.ContextTokens != child.Usage.ContextTokens || e.Settings.Recall != test.says {
				t.Errorf("%s: explained are %+v, the context has %+v", name, e.Usage, child.Usage)
			}
		}
	}
}
