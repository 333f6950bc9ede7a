package openai_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
)

// Pages go on after items that others delete meanwhile, as far as they can.
func TestPagesWhileItemsGo(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, _ := a.conversation(`{"items":[` + strings.Join([]string{
		says("user", "q1"), `{"type":"reasoning","id":"rs_1","summary":[]}`, says("assistant", "a1"), `{"type":"function_call","call_id":"c","name":"f","arguments":""}`, `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"1"},{"type":"input_text","text":"2"}]}`,
		`{"role":"developer","content":"Mind."}`, says("user", "q2"), says("user", "q2"), says("assistant", "a2"),
	}, ",") + `]}`)
	if got, want := a.items(id, "?order=asc&limit=100").says(), "user:q1 assistant:a1 function_call:c function_call_output:c developer:Mind. user:q2 user:q2 assistant:a2"; got != want {
		t.Errorf("the items are %s", got)
	}
	for _, order := range []string{"asc", "desc"} {
		all := a.itemIDs(id, order, 100)
		for limit := range 4 {
			if got := a.itemIDs(id, order, limit+1); strings.Join(got, " ") != strings.Join(all, " ") {
				t.Errorf("%s by %d: %v, want %v", order, limit+1, got, all)
			}
		}
	}
	page := a.items(id, "?limit=2")
	a.ask(200, "acme", "DELETE", "/conversations/"+id+"/items/"+page.Data[0].ID, "")
	if next := a.items(id, "?limit=2&after="+page.Data[1].ID); next.says() != "user:q2 developer:Mind." {
		t.Errorf("%s", next.says())
	}
	if got, _ := a.ask(400, "acme", "GET", "/conversations/"+id+"/items?after="+page.Data[0].ID, ""); !strings.Contains(got, `"param":"after"`) {
		t.Errorf("%s", got)
	}
}

// Turns, items and deletes in one conversation at the same time: what was answered is
// there, and what met the end of the message that it follows says so.
func TestAllAtOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Echo())
	id, native := a.conversation(`{"items":[` + says("user", "first") + `,` + says("assistant", "hello") + `]}`)
	last := a.items(id, "?limit=1").Data[0].ID
	var wg sync.WaitGroup
	var said sync.Map
	take := func(text string, status int, got string) {
		switch {
		case status == 200:
			said.Store(text, true)
		case status != 404 || !strings.Contains(got, "_not_found"): // its place was deleted meanwhile
			t.Errorf("%s: %d %s", text, status, got)
		}
	}
	for i := range 6 {
		wg.Go(func() {
			text := fmt.Sprint("item ", i)
			status, got, _ := a.send("acme", "POST", "/conversations/"+id+"/items", `{"items":[`+says("user", text)+`]}`)
			take(text, status, got)
		})
		wg.Go(func() {
			text := fmt.Sprint("turn ", i)
			status, got, _ := a.send("acme", "POST", "/responses", fmt.Sprintf(`{"model":"wood","stream":%v,"conversation":"%s","input":"%s"}`, i%2 == 0, id, text))
			if strings.Contains(got, "event: response.failed\n") { // the same, once the stream had begun
				return
			}
			if take(text, status, got); status == 200 && !strings.Contains(got, `"status":"completed"`) {
				t.Errorf("%s: %s", text, got)
			}
		})
		wg.Go(func() {
			if status, got, _ := a.send("acme", "DELETE", "/conversations/"+id+"/items/"+last, ""); status >= 500 {
				t.Errorf("%d %s", status, got)
			}
			if status, got, _ := a.send("acme", "GET", "/conversations/"+id+"/items?order=asc", ""); status != 200 {
				t.Errorf("%d %s", status, got)
			}
		})
	}
	wg.Wait()
	var all strings.Builder
	for n, err := range a.store.ForTenant("acme").Tree(t.Context(), native, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all.Write(a.message("acme", native.String(), n.ID.String()).Body)
	}
	said.Range(func(text, _ any) bool {
		if !strings.Contains(all.String(), fmt.Sprintf(`{"role":"user","content":%q}`, text)) {
			t.Errorf("%s is lost of %s", text, all.String())
		}
		return true
	})
	if items := a.items(id, "?order=asc&limit=100"); !strings.HasPrefix(items.says(), "user:first") {
		t.Errorf("%s", items.says())
	}
}
