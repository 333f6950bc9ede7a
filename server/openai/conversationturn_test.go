package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"

	"github.com/coppice-chat/coppice/server/openai/wire"
)

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
		if status == 200 && !strings.HasPrefix(got, `{"id":"`+id+`","object":"conversation",`) {
			t.Errorf("%s", got)
		}
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
