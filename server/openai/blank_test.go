package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestBlankEnds holds that an answer that ends with nothing said is incomplete
// where the model says why.
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
			got, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood",`+members+`"input":"Think."}`)
			if !strings.Contains(got, `"status":"incomplete"`) || !strings.Contains(got, `"incomplete_details":{"reason":"`+want+`"}`) || strings.Contains(members, "stream") != strings.Contains(got, "event: response.incomplete\n") {
				t.Errorf("%s %s: %s", reason, members, got)
			}
		}
		id := a.get("POST", "/responses", `{"model":"wood","background":true,"input":"Think."}`)["id"].(string)
		check.Eventually(t, "the end in the background", func() bool { return a.status(id) == "incomplete" })
		if got, _ := a.again().ask(200, "acme", "GET", "/responses/"+id, ""); !strings.Contains(got, `"incomplete_details":{"reason":"`+want+`"}`) || !strings.Contains(got, `"total_tokens":7`) || !strings.Contains(got, `"error":null`) {
			t.Errorf("in the background: %s", got)
		}
		for _, members := range []string{``, store, `"stream":true,"stream_options":{"include_usage":true},`, store + `"stream":true,"stream_options":{"include_usage":true},`} {
			got, _ := a.ask(200, "acme", "POST", "/chat/completions", chatBody(members, said("user", "Think.")))
			check.Has(t, fmt.Sprintf("%s %q", reason, members), got, `"finish_reason":"`+reason+`"`, `"total_tokens":7`)
			check.Lacks(t, fmt.Sprintf("%s %q", reason, members), got, `"error"`)
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
		if opened, closed := strings.Count(got, "event: response.output_item.added\n"), strings.Count(got, "event: response.output_item.done\n"); opened != closed {
			t.Errorf("%s: %d items begin, and %d end: %s", name, opened, closed, got)
		}
		check.Has(t, name+", streamed", final(got), a.tells(200, "GET", "/responses/"+finalID(t, got), ""))
		if got, _ := a.ask(200, "acme", "POST", "/chat/completions", chatBody(store+`"stream":true,`, said("user", name))); !strings.Contains(got, `"finish_reason":"length"`) || !strings.HasSuffix(got, "data: [DONE]\n\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
