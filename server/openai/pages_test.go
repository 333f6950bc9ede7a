package openai_test

import (
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
	check.Has(t, "the answer", got, "messages of over 32 MiB together")
}
