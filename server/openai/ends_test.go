package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
)

// TestGoingOnFromEveryEnd holds that what a response came to decides whether another
// one goes on from it.
func TestGoingOnFromEveryEnd(t *testing.T) {
	t.Parallel()
	a := setup{replies: often("a")}.serve(t)
	a.upstream.Otherwise(llmtest.Answer("Indeed."))
	background := func(b llmtest.Behaviour) string {
		t.Helper()
		before := len(a.upstream.Requests())
		a.upstream.Script(b)
		id := a.get("POST", "/responses", `{"model":"wood","background":true,"input":"What is a coppice?","tools":[{"type":"function","name":"f"}]}`)["id"].(string)
		check.Eventually(t, "the model's request", func() bool { return len(a.upstream.Requests()) > before })
		return id
	}
	next := func(id, input string) (int, string) {
		t.Helper()
		status, got, _ := a.send("acme", "POST", "/responses", `{"model":"wood","previous_response_id":"`+id+`","input":`+input+`}`)
		return status, got
	}
	absent := func(what, id string) {
		t.Helper()
		for _, body := range []string{`"store":false,`, ``} {
			got, _ := a.ask(400, "acme", "POST", "/responses", `{"model":"wood",`+body+`"previous_response_id":"`+id+`","input":"Go on."}`)
			if !strings.Contains(got, `"param":"previous_response_id","code":"previous_response_not_found"`) {
				t.Errorf("%s: %s", what, got)
			}
		}
	}
	goesOn := func(what, id, want string) {
		t.Helper()
		if status, got := next(id, `"Go on."`); status != 200 || !strings.Contains(a.prompt(), want) {
			t.Errorf("%s: %d %s; the model was given %s", what, status, got, a.prompt())
		}
	}
	becomes := func(id, status, want string) {
		t.Helper()
		check.Eventually(t, status, func() bool { return a.status(id) == status })
		if got, _ := a.ask(200, "acme", "GET", "/responses/"+id, ""); !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}

	id := background(llmtest.Fail(500))
	becomes(id, "failed", `"error":{"code":"server_error"`)
	absent("failed with nothing", id)

	id = background(llmtest.FailMidway("It is a wood that is cut."))
	becomes(id, "failed", `"role":"assistant","status":"incomplete"`)
	goesOn("failed midway", id, "It is")

	id = background(llmtest.Truncated("Be long"))
	becomes(id, "incomplete", `"incomplete_details":{"reason":"max_output_tokens"}`)
	goesOn("cut", id, "Be long")

	id = background(llmtest.Hang())
	absent("running", id)
	if got := a.get("POST", "/responses/"+id+"/cancel", ""); got["status"] != "cancelled" || got["error"] != nil {
		t.Errorf("%v", got)
	}
	absent("cancelled with nothing", id)
	if stream, _ := a.ask(200, "acme", "GET", "/responses/"+id+"?stream=true", ""); !strings.Contains(final(stream), `"status":"cancelled"`) || !strings.HasSuffix(stream, "data: [DONE]\n\n") {
		t.Errorf("%s", stream)
	}

	id = background(llmtest.HangMidway("Every ten years, or so."))
	a.begunToSpeak(id)
	absent("speaking", id)
	a.get("POST", "/responses/"+id+"/cancel", "")
	goesOn("cancelled midway", id, "Every")
	a.get("DELETE", "/responses/"+id, "")
	absent("deleted", id)

	id = background(llmtest.CallTools(llmtest.ToolCall{ID: "call_1", Name: "f", Arguments: `{}`}, llmtest.ToolCall{ID: "call_2", Name: "f", Arguments: `{}`}))
	becomes(id, "completed", "")
	output := func(call, out string) string {
		return `{"type":"function_call_output","call_id":"` + call + `","output":` + out + `}`
	}
	for _, test := range []struct {
		status      int
		input, want string
	}{
		{400, `"Well?"`, "No tool output found for function call call_1."},
		{400, `[` + output("call_2", `"x"`) + `,{"role":"user","content":"Well?"}]`, "No tool output found for function call call_1."},
		{400, `[` + output("call_1", `"x"`) + `,` + output("call_1", `"x"`) + `]`, "No tool call found for function call output with call_id call_1."},
		{400, `[` + output("call_1", `[{"type":"input_file","file_id":"f"}]`) + `]`, `"param":"input[0].output[0].file_id"`},
		{200, `[` + output("call_2", `[{"type":"input_text","text":"22"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]`) + `,` + output("call_1", `[]`) + `]`, `"status":"completed"`},
		{200, `[` + output("call_2", `""`) + `,` + output("call_1", `"x"`) + `,{"role":"user","content":"Well?"}]`, `"status":"completed"`},
	} {
		if status, got := next(id, test.input); status != test.status || !strings.Contains(got, test.want) {
			t.Errorf("%s: %d %s", test.input, status, got)
		}
	}
}

// TestDeletedWhileItRuns holds that a response that is deleted while its stream is
// read ends the stream.
func TestDeletedWhileItRuns(t *testing.T) {
	t.Parallel()
	a := setup{replies: often("a")}.serve(t)
	a.upstream.Otherwise(llmtest.HangMidway("It is a wood that is cut so that it grows again."))
	id, whole := a.stream(`{"model":"wood","stream":true,"input":"What is a coppice?"}`)
	a.begunToSpeak(id)
	a.get("DELETE", "/responses/"+id, "")
	if got := whole(); !strings.Contains(got, "event: response.incomplete\n") || !strings.HasSuffix(got, "data: [DONE]\n\n") {
		t.Errorf("%s", got)
	}
	a.ask(404, "acme", "GET", "/responses/"+id, "")
	if n := len(a.listed("acme")); n != 0 {
		t.Errorf("%d conversations are left", n)
	}
}

// TestDeletedMidway holds that the end of a stream says what was deleted while it
// was read, and what to do, whether or not a piece of the answer was saved before.
func TestDeletedMidway(t *testing.T) {
	t.Parallel()
	const (
		conversationGone = `"message":"The conversation was deleted while the answer came, so nothing of the answer is stored. Begin a new conversation."`
		branchGone       = `"message":"What was answered, or the answer, was deleted while the answer came, so nothing of it is stored. Go on from a message that is still there."`
	)
	for name, with := range map[string]reply.Config{"saved": often("a"), "not saved": {}} {
		a := setup{replies: with}.serve(t)
		for _, want := range []string{conversationGone, branchGone} {
			gate := make(chan struct{})
			a.upstream.Otherwise(llmtest.PauseMidway(gate, "It is a wood that is cut so that it grows again."))
			conversation, native := a.conversation(`{"items":[` + says("user", "q") + `]}`)
			id, whole := a.stream(`{"model":"wood","stream":true,"conversation":"` + conversation + `","input":"What is a coppice?"}`)
			if name == "saved" {
				a.begunToSpeak(id)
			}
			if want == conversationGone {
				a.get("DELETE", "/conversations/"+conversation, "")
			} else {
				var question uuid.UUID
				for n, err := range a.store.ForTenant("acme").Tree(t.Context(), native, 0) {
					if err == nil && n.ParentID != uuid.Nil {
						question = n.ID
					}
				}
				check.Must(a.store.ForTenant("acme").Prune(t.Context(), native, question))(t)
			}
			close(gate)
			if got := whole(); !strings.Contains(got, "event: response.failed\n") || !strings.Contains(got, want) {
				t.Errorf("%s: %s", name, got)
			}
			a.ask(404, "acme", "GET", "/responses/"+id, "")
			a.ask(404, "acme", "GET", "/responses/"+id+"/input_items", "")
		}
	}
}

// TestDeleteResponse holds that a response that was deleted is read no more, that
// the branches which go on from it stay whole, and that nothing is left when the
// last of them is gone, in whatever order they go.
func TestDeleteResponse(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("Indeed."))
	for _, order := range [][]int{{0, 1, 2, 3}, {1, 3, 0, 2}} {
		// 0 – 1 – 2, and 3 beside 1.
		ids := []string{a.create(`{"model":"wood","input":"Question 0?"}`).ID}
		for _, previous := range []int{0, 1, 0} {
			ids = append(ids, a.create(fmt.Sprintf(`{"model":"wood","input":"Question %d?","previous_response_id":"%s"}`, len(ids), ids[previous])).ID)
		}
		gone := map[int]bool{}
		for _, i := range order {
			if got := a.get("DELETE", "/responses/"+ids[i], ""); got["id"] != ids[i] || got["object"] != "response" || got["deleted"] != true {
				t.Errorf("%v", got)
			}
			gone[i] = true
			for _, visit := range [][2]string{{"GET", ""}, {"GET", "?stream=true"}, {"GET", "/input_items"}, {"POST", "/cancel"}, {"DELETE", ""}} {
				a.ask(404, "acme", visit[0], "/responses/"+ids[i]+visit[1], "")
			}
			if got, _ := a.ask(400, "acme", "POST", "/responses", `{"model":"wood","input":"hi","previous_response_id":"`+ids[i]+`"}`); !strings.Contains(got, "previous_response_not_found") {
				t.Errorf("%s", got)
			}
			for j, id := range ids {
				if gone[j] {
					a.ask(404, "acme", "GET", "/responses/"+id, "")
					continue
				}
				list, _ := a.ask(200, "acme", "GET", "/responses/"+id+"/input_items?limit=100", "")
				if !strings.Contains(list, "Question 0?") || j == 2 && !strings.Contains(list, "Question 1?") || j != 3 && strings.Contains(list, "Question 3?") {
					t.Errorf("of response %d is left %s", j, list)
				}
			}
		}
		if n := len(a.listed("acme")); n != 0 {
			t.Errorf("%d conversations are left", n)
		}
	}
	// A conversation that a request named stays.
	id, native := a.conversation(`{}`)
	r := a.create(`{"model":"wood","input":[{"role":"developer","content":"Mind."},{"role":"user","content":"hi"}],"conversation":"` + id + `"}`)
	a.get("DELETE", "/responses/"+r.ID, "")
	if len(a.listed("acme")) != 1 || a.treeSize(native) != 0 {
		t.Errorf("%d conversations are left, and %d messages", len(a.listed("acme")), a.treeSize(native))
	}
}
