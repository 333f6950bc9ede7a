package openai_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// TestItemsAreTheActiveBranch holds that pages of any size and order are the
// items of the active branch, in any tree.
func TestItemsAreTheActiveBranch(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	store := a.store.ForTenant("acme")
	rapid.Check(t, func(rt *rapid.T) {
		c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{}))(rt)
		nodes := []uuid.UUID{uuid.Nil}
		for i := range rapid.IntRange(1, 10).Draw(rt, "messages") {
			body := rapid.SampledFrom([]string{
				`{"role":"user","content":"q"}`, `{"role":"assistant","content":"a"}`, `{"role":"assistant","content":null,"refusal":"no"}`,
				`{"role":"assistant","content":"t","reasoning_content":"r","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"y","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			}).Draw(rt, "body")
			parent := nodes[max(0, len(nodes)-1-rapid.IntRange(0, 2).Draw(rt, "up"))]
			m, err := store.Append(t.Context(), c.ID, parent, tree.NewMessage{Message: chat.Read([]byte(body))})
			if err != nil {
				rt.Fatalf("message %d: %v", i, err)
			}
			nodes = append(nodes, m.ID)
		}
		head := rapid.SampledFrom(nodes[1:]).Draw(rt, "head")
		check.Must(store.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{HeadID: head}))(rt)
		branch := check.Must(store.Transcript(t.Context(), c.ID, head, tree.Paging{Limit: 100}))(rt)
		var want []string
		for _, m := range branch.Data {
			at := wire.ItemID{NodeID: wire.NodeID{Conversation: c.ID, Node: m.ID}, Kind: wire.KindMessage, Ordinal: 1}
			many := strings.Contains(string(m.Body), "tool_calls")
			if many {
				want = append(want, wire.ItemID{NodeID: at.NodeID, Kind: wire.KindReasoning}.String())
			}
			want = append(want, at.String())
			if many {
				for i := range 2 {
					want = append(want, wire.ItemID{NodeID: at.NodeID, Kind: wire.KindCall, Ordinal: 2 + i}.String())
				}
			}
		}
		limit := rapid.IntRange(1, 4).Draw(rt, "limit")
		if got := a.itemIDs(wire.ConversationID(c.ID), "asc", limit); !slices.Equal(got, want) {
			rt.Fatalf("forwards they are %v, want %v", got, want)
		}
		slices.Reverse(want)
		if got := a.itemIDs(wire.ConversationID(c.ID), "desc", limit); !slices.Equal(got, want) {
			rt.Fatalf("backwards they are %v, want %v", got, want)
		}
	})
}

// TestPagesWhileAnotherBranchBecomesActive holds that a client that pages from the
// newest item back stays on the branch on which it began, also where items are
// deleted. Forwards it is told that the item is on no active branch any more.
func TestPagesWhileAnotherBranchBecomesActive(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, native := a.conversation(`{"items":[` + says("user", "root") + "," + says("assistant", "one") + "," + says("user", "two") + "," + says("user", "three") + `]}`)
	page := a.items(id, "?limit=2")
	a.ask(200, "acme", "DELETE", "/conversations/"+id+"/items/"+page.Data[0].ID, "")
	check.Equal(t, "after a deletion the rest", a.items(id, "?after="+*page.LastID).says(), "assistant:one user:root")
	a.ask(400, "acme", "GET", "/conversations/"+id+"/items?after="+page.Data[0].ID, "")
	first, begun := a.items(id, "?limit=1"), a.items(id, "?limit=2&order=asc")
	root := begun.Data[0].ID
	item := check.Must(wire.ParseItemID(root))(t)
	check.Must(a.store.ForTenant("acme").Append(t.Context(), native, item.Node, tree.NewMessage{Message: chat.Read([]byte(`{"role":"assistant","content":"other"}`))}))(t)
	check.Equal(t, "the items", a.items(id, "?order=asc").says(), "user:root assistant:other")
	check.Equal(t, "the rest", a.items(id, "?after="+*first.LastID).says(), "assistant:one user:root")
	a.ask(400, "acme", "GET", "/conversations/"+id+"/items?order=asc&after="+*begun.LastID, "")
	check.Equal(t, "after the item that both have comes", a.items(id, "?order=asc&after="+root).says(), "assistant:other")
	a.ask(404, "acme", "GET", "/conversations/"+id+"/items/"+*begun.LastID, "")
}
