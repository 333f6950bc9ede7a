package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/tree"
)

// TestDeleteResponse holds that a response that was deleted is read no more, that
// the branches which go on from it stay whole, and that nothing is left when the
// last of them is gone, in whatever order they go.
func TestDeleteResponse(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]int{"from the first": {0, 1, 2, 3}, "from the last": {3, 2, 1, 0}, "mixed": {1, 3, 0, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := setup{script: answersOf(9)}.serve(t)
			// 0 – 1 – 2, and 3 beside 1.
			ids := []string{a.talk(1)}
			for _, previous := range []int{0, 1, 0} {
				ids = append(ids, a.create(fmt.Sprintf(`{"model":"wood","input":"Question %d?","previous_response_id":"%s"}`, len(ids), ids[previous])).ID)
			}
			gone := map[int]bool{}
			for _, i := range order {
				got := a.get("DELETE", "/responses/"+ids[i], "")
				if got["id"] != ids[i] || got["object"] != "response" || got["deleted"] != true {
					t.Errorf("%v", got)
				}
				gone[i] = true
				for j, id := range ids {
					if gone[j] {
						for _, visit := range [][2]string{{"GET", ""}, {"GET", "?stream=true"}, {"GET", "/input_items"}, {"POST", "/cancel"}, {"DELETE", ""}} {
							a.ask(404, "acme", visit[0], "/responses/"+id+visit[1], "")
						}
						if got, _ := a.ask(400, "acme", "POST", "/responses", `{"model":"wood","input":"hi","previous_response_id":"`+id+`"}`); !strings.Contains(got, "previous_response_not_found") {
							t.Errorf("%s", got)
						}
						continue
					}
					list, _ := a.ask(200, "acme", "GET", "/responses/"+id+"/input_items?limit=100", "")
					if !strings.Contains(list, "Question 0.") || j == 2 && !strings.Contains(list, "Question 1?") || j != 3 && strings.Contains(list, "Question 3?") {
						t.Errorf("of response %d is left %s", j, list)
					}
				}
			}
			if n := a.kept(); n != 0 {
				t.Errorf("%d conversations are left", n)
			}
		})
	}
}

// TestDeleteKeepsConversation holds that a conversation that a request named stays.
func TestDeleteKeepsConversation(t *testing.T) {
	t.Parallel()
	a := setup{script: answersOf(2)}.serve(t)
	c, _, err := a.store.ForTenant("acme").CreateConversation(t.Context(), tree.NewConversation{Title: "Trees"})
	if err != nil {
		t.Fatal(err)
	}
	r := a.create(`{"model":"wood","input":[{"role":"developer","content":"Mind."},{"role":"user","content":"hi"}],"conversation":"` + openai.ConversationID(c.ID) + `"}`)
	a.ask(404, "other", "DELETE", "/responses/"+r.ID, "")
	a.get("DELETE", "/responses/"+r.ID, "")
	left, err := a.store.ForTenant("acme").Branches(t.Context(), c.ID, tree.Paging{})
	if err != nil || len(left.Data) != 0 {
		t.Errorf("left are %v, %v", left.Data, err)
	}
}

// TestInputItems holds that the pages of a list, in both orders and of any size, are
// what the response answers.
func TestInputItems(t *testing.T) {
	t.Parallel()
	call := llmtest.ToolCall{ID: "call_1", Name: "weather", Arguments: `{}`}
	a := setup{script: []llmtest.Behaviour{llmtest.Answer("Hello."), llmtest.CallTools(call), llmtest.Answer("Sunny.")}}.serve(t)
	const tools = `,"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]}`
	one := a.create(`{"model":"wood","input":"hi"` + tools)
	two := a.create(`{"model":"wood","input":"Weather?","previous_response_id":"` + one.ID + `"` + tools)
	three := a.create(`{"model":"wood","input":[{"type":"function_call_output","call_id":"call_1","output":"22"}],"previous_response_id":"` + two.ID + `"` + tools)
	read := func(query string) (got []string) {
		t.Helper()
		after := ""
		for range 10 {
			page := a.get("GET", "/responses/"+three.ID+"/input_items?"+query+after, "")
			for _, raw := range page["data"].([]any) {
				i := raw.(map[string]any)
				got = append(got, i["type"].(string))
				after = "&after=" + i["id"].(string)
			}
			if page["object"] != "list" || page["has_more"] == false {
				return got
			}
		}
		t.Fatalf("no end of %v", got)
		return nil
	}
	const want = "[message message message function_call function_call_output]"
	for _, limit := range []string{"limit=1", "limit=2", "limit=100"} {
		if got := fmt.Sprint(read(limit + "&order=asc")); got != want {
			t.Errorf("%s: %s", limit, got)
		}
		if got := fmt.Sprint(read(limit)); got != "[function_call_output function_call message message message]" {
			t.Errorf("%s: %s", limit, got)
		}
	}
	for _, query := range []string{"limit=0", "order=up", "after=msg_1"} {
		a.ask(400, "acme", "GET", "/responses/"+three.ID+"/input_items?"+query, "")
	}
	a.ask(404, "other", "GET", "/responses/"+three.ID+"/input_items", "")
}
