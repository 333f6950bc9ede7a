package openai_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// TestPagesAreBounded holds that large messages make short pages, which together give
// every item once.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	store := a.store.ForTenant("acme")
	c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	const large = 6 // answers, of which five fill a page
	last := uuid.Nil
	for i := range 1 + large + 1 {
		m := tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":"q"}`))}
		if i > 0 {
			m = tree.NewMessage{Message: chat.Read([]byte(`{"role":"assistant","content":"a"}`)), Metadata: json.RawMessage(`{"openai":{"completion":"k"}}`)}
		}
		if 0 < i && i <= large {
			m.Message = chat.Text(chat.Assistant, strings.Repeat("  .", 300<<10))
		}
		stored := check.Must(store.Append(t.Context(), c.ID, last, m, tree.WithPathHash()))(t)
		last = stored.ID
	}
	answer := wire.NodeID{Conversation: c.ID, Node: last}
	for path, items := range map[string]int{
		"/conversations/" + wire.ConversationID(c.ID) + "/items": 1 + large + 1,
		"/responses/" + answer.ResponseID() + "/input_items":     1 + large,
	} {
		for _, order := range []string{"asc", "desc"} {
			seen, given, pages := map[string]bool{}, 0, 0
			for after, more := "", true; more; pages++ {
				var page itemPage
				got, _ := a.ask(200, "acme", "GET", path+"?limit=100&order="+order+after, "")
				check.NoError(t, json.Unmarshal([]byte(got), &page))
				if len(got) > tree.MaxPageBytes+tree.MaxBodyBytes {
					t.Errorf("%s, %s: a page of %d items has %d bytes", path, order, len(page.Data), len(got))
				}
				for _, item := range page.Data {
					seen[item.ID] = true
				}
				given += len(page.Data)
				after, more = "&after="+*page.LastID, page.HasMore
			}
			if len(seen) != items || given != items || pages != 2 {
				t.Errorf("%s, %s: %d pages give %d of %d items, %d in all", path, order, pages, len(seen), items, given)
			}
		}
	}
}

// TestReferencesAreBounded holds that a small request can't have the server read more
// than a large one brings.
func TestReferencesAreBounded(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	store := a.store.ForTenant("acme")
	c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	thought := tree.NewMessage{Message: chat.Read([]byte(`{"role":"assistant","content":"a"}`)), Reasoning: strings.Repeat("x", 500<<10)}
	there := check.Must(store.AppendChain(t.Context(), c.ID, uuid.Nil, slices.Repeat([]tree.NewMessage{thought}, openai.MaxBody/(500<<10)+1)))(t)
	var input strings.Builder
	for _, m := range there.Messages {
		item := wire.ItemID{NodeID: wire.NodeID{Conversation: c.ID, Node: m.ID}, Kind: wire.KindMessage, Ordinal: 1}
		input.WriteString(`{"type":"item_reference","id":"` + item.String() + `"},`)
	}
	got, _ := a.ask(400, "acme", "POST", "/responses", `{"model":"wood","conversation":"`+wire.ConversationID(c.ID)+`","input":[`+input.String()+says("user", "q")+`]}`)
	if !strings.Contains(got, "messages of over 32 MiB together") {
		t.Error(got)
	}
}
