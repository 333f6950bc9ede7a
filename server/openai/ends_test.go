package openai_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
)

// stream sends a request for a stream, gives the id of the response, and what the
// whole stream is once it has ended.
func (a *api) stream(body string) (id string, whole func() string) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), "POST", a.url+"/openai/v1/responses", strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + a.secrets["acme"]}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	var n openai.NodeID
	if n.Conversation, err = parse(res.Header.Get("X-Coppice-Conversation-Id")); err == nil {
		n.Node, err = parse(res.Header.Get("X-Coppice-Head-Id"))
	}
	if err != nil || res.StatusCode != http.StatusOK {
		a.t.Fatalf("%d %v", res.StatusCode, err)
	}
	return n.ResponseID(), func() string {
		defer res.Body.Close()
		var all strings.Builder
		for buffer := make([]byte, 4096); ; {
			n, err := res.Body.Read(buffer)
			all.Write(buffer[:n])
			if err != nil {
				return all.String()
			}
		}
	}
}

// begunToSpeak waits until a piece of a response that runs is saved.
func (a *api) begunToSpeak(id string) {
	a.t.Helper()
	n, err := openai.ParseResponseID(id)
	if err != nil {
		a.t.Fatal(err)
	}
	eventually(a.t, "a piece of "+id, func() bool {
		c, err := a.store.ForTenant("acme").Checkpoint(a.t.Context(), n.Conversation, n.Node)
		return err == nil && c.Content != ""
	})
}

// What a response came to decides whether another one goes on from it.
func TestGoingOnFromEveryEnd(t *testing.T) {
	t.Parallel()
	a := setup{replies: often("a")}.serve(t)
	a.upstream.Otherwise(llmtest.Answer("Indeed."))
	background := func(b llmtest.Behaviour) string {
		t.Helper()
		before := len(a.upstream.Requests())
		a.upstream.Script(b)
		id := a.get("POST", "/responses", `{"model":"wood","background":true,"input":"What is a coppice?","tools":[{"type":"function","name":"f"}]}`)["id"].(string)
		eventually(t, "the model's request", func() bool { return len(a.upstream.Requests()) > before })
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
			status, got, _ := a.send("acme", "POST", "/responses", `{"model":"wood",`+body+`"previous_response_id":"`+id+`","input":"Go on."}`)
			if status != 400 || !strings.Contains(got, `"code":"previous_response_not_found"`) || !strings.Contains(got, `"param":"previous_response_id"`) {
				t.Errorf("%s: %d %s", what, status, got)
			}
		}
	}
	goesOn := func(what, id, want string) {
		t.Helper()
		if status, got := next(id, `"Go on."`); status != 200 || !strings.Contains(a.prompt(), want) {
			t.Errorf("%s: %d %s; the model was given %s", what, status, got, a.prompt())
		}
	}
	become := func(id, status string) map[string]any {
		t.Helper()
		eventually(t, status, func() bool { return a.status(id) == status })
		return a.get("GET", "/responses/"+id, "")
	}

	id := background(llmtest.Fail(500))
	become(id, "failed")
	absent("failed with nothing", id)

	id = background(llmtest.FailMidway("It is a wood that is cut."))
	if got := become(id, "failed"); got["error"].(map[string]any)["code"] != "server_error" || got["output"].([]any)[0].(map[string]any)["status"] != "incomplete" {
		t.Errorf("%v", got)
	}
	goesOn("failed midway", id, "It is")

	id = background(llmtest.Truncated("Be long"))
	if got := become(id, "incomplete"); got["incomplete_details"].(map[string]any)["reason"] != "max_output_tokens" || got["error"] != nil || got["usage"] == nil {
		t.Errorf("%v", got)
	}
	goesOn("cut", id, "Be long")

	id = background(llmtest.Hang())
	absent("running", id)
	if got := a.get("POST", "/responses/"+id+"/cancel", ""); got["status"] != "cancelled" || got["error"] != nil {
		t.Errorf("%v", got)
	}
	absent("cancelled with nothing", id)
	stream, _ := a.ask(200, "acme", "GET", "/responses/"+id+"?stream=true", "")
	if !strings.Contains(final(stream), `"status":"cancelled"`) || !strings.HasSuffix(stream, "data: [DONE]\n\n") {
		t.Errorf("%s", stream)
	}

	id = background(llmtest.HangMidway("Every ten years, or so."))
	a.begunToSpeak(id)
	absent("speaking", id)
	if got := a.get("POST", "/responses/"+id+"/cancel", ""); got["status"] != "cancelled" {
		t.Errorf("%v", got)
	}
	goesOn("cancelled midway", id, "Every")
	a.get("DELETE", "/responses/"+id, "")
	absent("deleted", id)

	id = background(llmtest.CallTools(llmtest.ToolCall{ID: "call_1", Name: "f", Arguments: `{}`}, llmtest.ToolCall{ID: "call_2", Name: "f", Arguments: `{}`}))
	become(id, "completed")
	output := func(call, out string) string {
		return `{"type":"function_call_output","call_id":"` + call + `","output":` + out + `}`
	}
	list := `[{"type":"input_text","text":"22"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]`
	for _, test := range []struct {
		status      int
		input, want string
	}{
		{400, `"Well?"`, "No tool output found for function call call_1."},
		{400, `[` + output("call_2", `"x"`) + `,{"role":"user","content":"Well?"}]`, "No tool output found for function call call_1."},
		{400, `[` + output("call_1", `"x"`) + `,` + output("call_1", `"x"`) + `]`, "No tool call found for function call output with call_id call_1."},
		{400, `[` + output("call_1", `7`) + `]`, `"param":"input[0].output"`},
		{400, `[` + output("call_1", `[{"type":"input_file","file_id":"f"}]`) + `]`, `"param":"input[0].output[0].file_id"`},
		{200, `[` + output("call_2", list) + `,` + output("call_1", `[]`) + `]`, `"status":"completed"`},
		{200, `[` + output("call_2", `""`) + `,` + output("call_1", `"x"`) + `,{"role":"user","content":"Well?"}]`, `"status":"completed"`},
	} {
		if status, got := next(id, test.input); status != test.status || !strings.Contains(got, test.want) {
			t.Errorf("%s: %d %s", test.input, status, got)
		}
	}
}

// A response that is deleted while its stream is read ends the stream, and a
// conversation that is deleted ends all that is said in it.
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
	if n := a.kept(); n != 0 {
		t.Errorf("%d conversations are left", n)
	}

	conversation, _ := a.conversation(`{"items":[` + says("user", "q") + `]}`)
	id, whole = a.stream(`{"model":"wood","stream":true,"conversation":"` + conversation + `","input":"What is a coppice?"}`)
	behind := a.get("POST", "/responses", `{"model":"wood","background":true,"conversation":"`+conversation+`","input":"And?"}`)["id"].(string)
	a.begunToSpeak(id)
	a.begunToSpeak(behind)
	a.get("DELETE", "/conversations/"+conversation, "")
	got := whole()
	if strings.Contains(got, "internal_error") || !strings.Contains(got, "event: response.failed\n") && !strings.Contains(got, "event: response.incomplete\n") && !strings.Contains(got, "event: error\n") {
		t.Errorf("%s", got)
	}
	for _, gone := range []string{id, behind} {
		eventually(t, "the end of what was deleted", func() bool {
			status, _, _ := a.send("acme", "GET", "/responses/"+gone, "")
			return status == 404
		})
		a.ask(404, "acme", "POST", "/responses/"+gone+"/cancel", "")
		a.ask(404, "acme", "GET", "/responses/"+gone+"/input_items", "")
	}
	if n := a.kept(); n != 0 {
		t.Errorf("%d conversations are left", n)
	}
	a.ask(404, "acme", "POST", "/responses", `{"model":"wood","conversation":"`+conversation+`","input":"More?"}`)
}

// Cancels, reads and deletes of one response at the same time agree.
func TestManyCancels(t *testing.T) {
	t.Parallel()
	a := setup{replies: often("a")}.serve(t)
	a.upstream.Otherwise(llmtest.HangMidway("It is a wood that is cut so that it grows again."))
	for i := range 6 {
		id := a.get("POST", "/responses", `{"model":"wood","background":true,"input":"What is a coppice?"}`)["id"].(string)
		if i%2 == 1 {
			a.begunToSpeak(id)
		}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if status, got, _ := a.send("acme", "POST", "/responses/"+id+"/cancel", ""); status != 200 || !strings.Contains(got, `"status":"cancelled"`) {
					t.Errorf("%d %s", status, got)
				}
			})
			wg.Go(func() {
				if status, got, _ := a.send("acme", "GET", "/responses/"+id+"?stream=true", ""); status != 200 || !strings.Contains(final(got), `"status":"cancelled"`) {
					t.Errorf("%d %s", status, got)
				}
			})
		}
		wg.Wait()
		first, _ := a.ask(200, "acme", "GET", "/responses/"+id, "")
		if again, _ := a.ask(200, "acme", "POST", "/responses/"+id+"/cancel", ""); again != first {
			t.Errorf("%s, then %s", first, again)
		}
	}
}

// A stream that is read on from behind its end has its end, whatever the number.
func TestBehindTheEnd(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("It is a wood."))
	r := a.create(`{"model":"wood","input":"What is a coppice?"}`)
	for _, after := range []string{"7", "8", "9", "1000", "2147483647"} {
		got, _ := a.ask(200, "acme", "GET", "/responses/"+r.ID+"?stream=true&starting_after="+after, "")
		if !strings.Contains(got, "event: response.completed\n") || !strings.HasSuffix(got, "data: [DONE]\n\n") || strings.Contains(got, `"sequence_number":`+after+`,`) {
			t.Errorf("after %s: %s", after, got)
		}
	}
	for _, after := range []string{"-1", "2147483648", "1e3", "x", "%00"} {
		if got, _ := a.ask(400, "acme", "GET", "/responses/"+r.ID+"?stream=true&starting_after="+after, ""); !strings.Contains(got, `"param":"starting_after"`) {
			t.Errorf("after %s: %s", after, got)
		}
	}
}

// References lead where the tree knows them, and nowhere else, in whatever way a
// request goes on.
func TestReferences(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("It is a wood."))
	first := a.create(`{"model":"wood","input":"What is a coppice?"}`)
	got, _ := a.ask(200, "other", "POST", "/responses", `{"model":"wood","input":"Secret?"}`)
	foreign := got[strings.Index(got, `"msg_`)+1:]
	foreign = foreign[:strings.Index(foreign, `"`)]
	unknown := "msg_" + strings.Repeat("A", 43) + "_1"
	conversation, _ := a.conversation(`{}`)
	for _, id := range []string{foreign, unknown, "msg_x", first.ID, "", strings.Replace(first.Output[0].ID, "msg_", "cmp_", 1)} {
		for _, members := range []string{``, `"store":false,`, `"previous_response_id":"` + first.ID + `",`, `"conversation":"` + conversation + `",`} {
			status, got, _ := a.send("acme", "POST", "/responses", `{"model":"wood",`+members+`"input":[{"type":"item_reference","id":"`+id+`"},{"role":"user","content":"Go on."}]}`)
			if status != 400 || !strings.Contains(got, `"param":"input[0]`) || strings.Contains(got, "Secret") {
				t.Errorf("%s of %q: %d %s", members, id, status, got)
			}
		}
	}
	before := len(a.upstream.Requests())
	for i, members := range []string{``, `"store":false,`, `"conversation":"` + conversation + `",`} {
		r := a.create(`{"model":"wood",` + members + `"input":[{"role":"user","content":"What is a coppice?"},{"id":"` + first.Output[0].ID + `"},{"type":"item_reference","id":"` + first.Output[0].ID + `"},{"role":"user","content":"Go on."}]}`)
		if got := a.prompt(); strings.Count(got, "It is a wood.") != 1 || r.Status != "completed" {
			t.Errorf("%d: the model was given %s", i, got)
		}
	}
	if n := len(a.upstream.Requests()) - before; n != 3 {
		t.Errorf("%d requests", n)
	}
}

// Requests that keep nothing go on from what is kept, and lead nowhere themselves.
func TestChainsThatKeepNothing(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("It is a wood."))
	kept := a.create(`{"model":"wood","input":"What is a coppice?"}`)
	for _, stream := range []bool{false, true} {
		body := fmt.Sprintf(`{"model":"wood","store":false,"stream":%v,"previous_response_id":"%s","input":"Go on."}`, stream, kept.ID)
		got, header := a.ask(200, "acme", "POST", "/responses", body)
		if header.Get("X-Coppice-Head-Id") != "" || !strings.Contains(a.prompt(), "What is a coppice?") {
			t.Errorf("%v; the model was given %s", header, a.prompt())
		}
		id := got[strings.Index(got, `"resp_`)+1:]
		id = id[:strings.Index(id, `"`)]
		for _, path := range []string{"", "?stream=true", "/input_items"} {
			a.ask(404, "acme", "GET", "/responses/"+id+path, "")
		}
		a.ask(404, "acme", "DELETE", "/responses/"+id, "")
		for _, members := range []string{``, `"store":false,`} {
			if got, _ := a.ask(400, "acme", "POST", "/responses", `{"model":"wood",`+members+`"previous_response_id":"`+id+`","input":"Go on."}`); !strings.Contains(got, "previous_response_not_found") {
				t.Errorf("%s", got)
			}
		}
	}
	if n := a.messages("acme", nodeOf(t, kept.ID).Conversation.String()); n != 2 {
		t.Errorf("%d messages", n)
	}
}
