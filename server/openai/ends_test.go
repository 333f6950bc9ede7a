package openai_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

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
		check.Eventually(t, "the model's request", func() bool { return len(a.upstream.Requests()) > before })
		return id
	}
	next := func(id, input string, status int, want string) {
		t.Helper()
		a.tells(status, "POST", "/responses", `{"model":"wood","previous_response_id":"`+id+`","input":`+input+`}`, want)
	}
	absent := func(what, id string) {
		t.Helper()
		for _, body := range []string{`"store":false,`, ``} {
			got, _ := a.ask(400, "acme", "POST", "/responses", `{"model":"wood",`+body+`"previous_response_id":"`+id+`","input":"Go on."}`)
			check.Has(t, what, got, `"param":"previous_response_id","code":"previous_response_not_found"`)
		}
	}
	goesOn := func(what, id, want string) {
		t.Helper()
		next(id, `"Go on."`, 200, "")
		check.Has(t, what+": the model was given", a.prompt(), want)
	}
	becomes := func(id, status, want string) {
		t.Helper()
		check.Eventually(t, status, func() bool { return a.status(id) == status })
		a.tells(200, "GET", "/responses/"+id, "", want)
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
	a.tells(200, "POST", "/responses/"+id+"/cancel", "", `"status":"cancelled"`, `"error":null`)
	absent("cancelled with nothing", id)
	stream, _ := a.ask(200, "acme", "GET", "/responses/"+id+"?stream=true", "")
	check.That(t, strings.Contains(final(stream), `"status":"cancelled"`) && strings.HasSuffix(stream, "data: [DONE]\n\n"), "%s", stream)

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
		next(id, test.input, test.status, test.want)
	}

	// A response that is deleted while its stream is read ends the stream, and leaves nothing.
	before := len(a.listed("acme"))
	a.upstream.Script(llmtest.HangMidway("It is a wood that is cut so that it grows again."))
	id, whole := a.stream(`{"model":"wood","stream":true,"input":"What is a coppice?"}`)
	a.begunToSpeak(id)
	a.get("DELETE", "/responses/"+id, "")
	got := whole()
	check.That(t, strings.Contains(got, "event: response.incomplete\n") && strings.HasSuffix(got, "data: [DONE]\n\n"), "%s", got)
	a.ask(404, "acme", "GET", "/responses/"+id, "")
	check.Equal(t, "conversations", len(a.listed("acme")), before)
}

// TestDeleteResponse holds that a deleted response is read no more, that what goes on from it stays
// whole, and a named conversation, too. TestMixedClients deletes in any order.
func TestDeleteResponse(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("Indeed."))
	first := a.create(`{"model":"wood","input":"Question 0?"}`).ID
	second := a.create(`{"model":"wood","input":"Question 1?","previous_response_id":"` + first + `"}`).ID
	a.tells(200, "DELETE", "/responses/"+first, "", `"id":"`+first+`"`, `"object":"response"`, `"deleted":true`)
	for _, visit := range [][2]string{{"GET", ""}, {"GET", "?stream=true"}, {"GET", "/input_items"}, {"POST", "/cancel"}, {"DELETE", ""}} {
		a.ask(404, "acme", visit[0], "/responses/"+first+visit[1], "")
	}
	a.tells(400, "POST", "/responses", `{"model":"wood","input":"hi","previous_response_id":"`+first+`"}`, "previous_response_not_found")
	a.tells(200, "GET", "/responses/"+second+"/input_items", "", "Question 0?", "Question 1?")
	id, native := a.conversation(`{}`)
	r := a.create(`{"model":"wood","input":[{"role":"developer","content":"Mind."},{"role":"user","content":"hi"}],"conversation":"` + id + `"}`)
	a.get("DELETE", "/responses/"+r.ID, "")
	check.Equal(t, "conversations", len(a.listed("acme")), 2)
	check.Equal(t, "messages", a.treeSize(native), 0)
}

// An answer that ends with nothing said is incomplete where the model says why.
func TestBlankEnds(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	blank := func(reason string) llmtest.Behaviour {
		return llmtest.Reply(func(r llmtest.Request) llmtest.Behaviour {
			const usage = `"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}`
			if !r.Stream {
				return llmtest.Raw(200, "application/json", `{"id":"x","object":"chat.completion","created":1,"model":"wood","choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"`+reason+`"}],`+usage+`}`)
			}
			return llmtest.Raw(200, "text/event-stream", chunk(`{"role":"assistant","content":""}`, "null")+chunk(`{}`, `"`+reason+`"`)+
				`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"wood","choices":[],`+usage+"}\n\ndata: [DONE]\n\n")
		})
	}
	for reason, want := range map[string]string{"length": "max_output_tokens", "content_filter": "content_filter"} {
		a.upstream.Otherwise(blank(reason))
		for _, members := range []string{``, `"store":false,`, `"stream":true,`, `"store":false,"stream":true,`} {
			got := a.tells(200, "POST", "/responses", `{"model":"wood",`+members+`"input":"Think."}`, `"status":"incomplete"`, `"incomplete_details":{"reason":"`+want+`"}`)
			check.Equal(t, members+" is a stream", strings.Contains(got, "event: response.incomplete\n"), strings.Contains(members, "stream"))
		}
		id := a.get("POST", "/responses", `{"model":"wood","background":true,"input":"Think."}`)["id"].(string)
		check.Eventually(t, "the end in the background", func() bool { return a.status(id) == "incomplete" })
		a.again().tells(200, "GET", "/responses/"+id, "", `"incomplete_details":{"reason":"`+want+`"}`, `"total_tokens":7`, `"error":null`)
		for _, members := range []string{``, store, `"stream":true,"stream_options":{"include_usage":true},`, store + `"stream":true,"stream_options":{"include_usage":true},`} {
			got := a.tells(200, "POST", "/chat/completions", chatBody(members, said("user", "Think.")), `"finish_reason":"`+reason+`"`, `"total_tokens":7`)
			check.Lacks(t, members, got, `"error"`)
		}
	}
	a.upstream.Otherwise(blank("stop"))
	a.ask(502, "acme", "POST", "/responses", `{"model":"wood","input":"Think."}`)
}

// chunk is an event of a model's stream.
func chunk(delta, reason string) string {
	return `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"wood","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + reason + `}]}` + "\n\n"
}

// TestCutBeforeTheText holds that a model that came to its limit amid its thoughts,
// or amid a call, gives an incomplete answer, whose stream is whole.
func TestCutBeforeTheText(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for name, test := range map[string]struct {
		deltas []string
		items  int
	}{
		"thoughts":         {[]string{`{"role":"assistant","reasoning_content":"They ask"}`, `{"reasoning_content":" for hazel."}`}, 0},
		"a call":           {[]string{`{"role":"assistant","tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{\"a"}}]}`}, 1},
		"a call's name":    {[]string{`{"role":"assistant","tool_calls":[{"index":0,"id":"c","type":"function","function":{"arguments":""}}]}`}, 0},
		"text and a call":  {[]string{`{"role":"assistant","content":"I look."}`, `{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]}`}, 2},
		"white space only": {[]string{`{"role":"assistant","content":"\n\n"}`}, 0},
	} {
		var stream string
		for _, delta := range test.deltas {
			stream += chunk(delta, "null")
		}
		a.upstream.Otherwise(llmtest.Raw(200, "text/event-stream", stream+chunk("{}", `"length"`)+"data: [DONE]\n\n"))
		got, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","stream":true,"input":"`+name+`","tools":[{"type":"function","name":"f"}]}`)
		if !strings.Contains(got, "event: response.incomplete\n") || strings.Contains(got, "event: response.failed\n") || strings.Count(final(got), `"id":"`)-1 != test.items {
			t.Errorf("%s: %s", name, got)
		}
		check.Equal(t, name+": items that end", strings.Count(got, "event: response.output_item.done\n"), strings.Count(got, "event: response.output_item.added\n"))
		check.Has(t, name+", streamed", final(got), a.tells(200, "GET", "/responses/"+finalID(t, got), ""))
		if got, _ := a.ask(200, "acme", "POST", "/chat/completions", chatBody(store+`"stream":true,`, said("user", name))); !strings.Contains(got, `"finish_reason":"length"`) || !strings.HasSuffix(got, "data: [DONE]\n\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
