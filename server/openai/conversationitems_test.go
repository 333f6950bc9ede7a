package openai_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// Pages of any size and order are the items of the active branch, in any tree.
func TestItemsAreTheActiveBranch(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	store := a.store.ForTenant("acme")
	rapid.Check(t, func(rt *rapid.T) {
		c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{}))(rt)
		nodes := []uuid.UUID{uuid.Nil}
		for range rapid.IntRange(1, 10).Draw(rt, "messages") {
			body := rapid.SampledFrom([]string{
				`{"role":"user","content":"q"}`, `{"role":"assistant","content":"a"}`, `{"role":"assistant","content":null,"refusal":"no"}`,
				`{"role":"assistant","content":"t","reasoning_content":"r","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"y","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			}).Draw(rt, "body")
			parent := nodes[max(0, len(nodes)-1-rapid.IntRange(0, 2).Draw(rt, "up"))]
			nodes = append(nodes, check.Must(store.Append(t.Context(), c.ID, parent, tree.NewMessage{Message: chat.Read([]byte(body))}))(rt).ID)
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
		check.Equal(rt, "forwards", fmt.Sprint(a.itemIDs(wire.ConversationID(c.ID), "asc", limit)), fmt.Sprint(want))
		slices.Reverse(want)
		check.Equal(rt, "backwards", fmt.Sprint(a.itemIDs(wire.ConversationID(c.ID), "desc", limit)), fmt.Sprint(want))
	})
}

// TestPagesWhileAnotherBranchBecomesActive holds that pages from the newest item back stay on their
// branch, also where items are deleted. Forwards, an item of no active branch is refused.
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

// A small request can't have the server read more than a large one brings.
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

// TestDeleteItem takes items from the end of a conversation, and from within it.
func TestDeleteItem(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const call = `{"type":"function_call","call_id":"%[1]s","name":"age","arguments":"{}"}`
	const output = `{"type":"function_call_output","call_id":"%[1]s","output":"9"}`
	begin := strings.Join([]string{
		says("user", "q1"), says("assistant", "a1"), fmt.Sprintf(call, "c1"), fmt.Sprintf(call, "c2"), fmt.Sprintf(output, "c1"), fmt.Sprintf(output, "c2"), says("assistant", "a2"),
	}, ",")
	remove := func(status int, id string, at int) string {
		t.Helper()
		got, _ := a.ask(status, "acme", "DELETE", "/conversations/"+id+"/items/"+a.items(id, "?order=asc").Data[at].ID, "")
		check.That(t, status != 200 || strings.HasPrefix(got, `{"id":"`+id+`","object":"conversation",`), "%s", got)
		return got
	}

	id, native := a.conversation(`{"items":[` + begin + `]}`)
	for at, want := range map[int]string{6: "a2", 5: "c2", 4: "c1"} {
		if got := a.items(id, "?order=asc").Data[at]; got.CallID != want && got.Content[0].Text != want {
			t.Fatalf("item %d is %+v", at, got)
		}
	}
	// From the end, as sessions pop: nothing stays in the tree.
	for at := 6; at >= 0; at-- {
		remove(200, id, at)
		check.Equal(t, "items", len(a.items(id, "").Data), at)
	}
	check.Equal(t, "messages", a.treeSize(native), 0)
	a.add(id, says("user", "again"))

	// From within: the branch is made anew, and the former one stays.
	id, native = a.conversation(`{"items":[` + begin + `]}`)
	check.Has(t, "the answer", remove(400, id, 2), "Delete the output first.")
	check.Equal(t, "messages", a.treeSize(native), 5)
	remove(200, id, 0)
	a.shows(native, 9, "assistant:a1 function_call:c1 function_call:c2 function_call_output:c1 function_call_output:c2 assistant:a2")
	remove(200, id, 0) // the text alone goes; the calls stay
	check.Equal(t, "the items", a.items(id, "?order=asc").says(), "function_call:c1 function_call:c2 function_call_output:c1 function_call_output:c2 assistant:a2")
	remove(200, id, 3) // a result; the model gets one that stands for it
	remove(200, id, 1) // now its call may go
	check.Equal(t, "the items", a.items(id, "?order=asc").says(), "function_call:c1 function_call_output:c1 assistant:a2")

	// Where other branches begin at the last message, it stays for them.
	id, native = a.conversation(`{"items":[` + says("user", "q") + "," + says("assistant", "a") + `]}`)
	last := a.items(id, "?limit=1").Data[0].ID
	a.add(id, says("user", "more"))
	node := check.Must(wire.ParseItemID(last))(t)
	a.setHead(native, node.Node)
	remove(200, id, 1)
	a.shows(native, 3, "user:q")
	check.Has(t, "the answer", remove(400, id, 0), "other branches begin at it")
	a.ask(404, "acme", "GET", "/conversations/"+id+"/items/"+last, "")
	a.ask(404, "acme", "DELETE", "/conversations/"+id+"/items/"+last, "")

	// Of the items that are deleted from a former branch, none comes back.
	id, _ = a.conversation(`{"items":[` + says("user", "q") + "," + says("assistant", "a") + `]}`)
	remove(200, id, 0)
	check.Has(t, "the answer", remove(400, id, 0), "stand beside it")
	check.Equal(t, "the items", a.items(id, "").says(), "assistant:a")
}
