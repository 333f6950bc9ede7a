package openai_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
)

// An answer that ends with nothing said is incomplete where the model says why.
func TestBlankEnds(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	blank := func(reason string) llmtest.Behaviour {
		return llmtest.Reply(func(r llmtest.Request) llmtest.Behaviour {
			if !r.Stream {
				return llmtest.Raw(200, "application/json", `{"id":"x","object":"chat.completion","created":1,"model":"wood","choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"`+reason+`"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`)
			}
			return llmtest.Raw(200, "text/event-stream", `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"wood","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`+"\n\n"+
				`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"wood","choices":[{"index":0,"delta":{},"finish_reason":"`+reason+`"}]}`+"\n\n"+
				`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"wood","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`+"\n\ndata: [DONE]\n\n")
		})
	}
	for reason, want := range map[string]string{"length": "max_output_tokens", "content_filter": "content_filter"} {
		a.upstream.Otherwise(blank(reason))
		for _, members := range []string{``, `"store":false,`} {
			for _, stream := range []bool{false, true} {
				body := `{"model":"wood",` + members + `"input":"Think."`
				if stream {
					body += `,"stream":true`
				}
				status, got, _ := a.send("acme", "POST", "/responses", body+`}`)
				if status != 200 || !strings.Contains(got, `"status":"incomplete"`) || !strings.Contains(got, `"incomplete_details":{"reason":"`+want+`"}`) || stream && !strings.Contains(got, "event: response.incomplete\n") {
					t.Errorf("%s %s: %d %s", reason, body, status, got)
					continue
				}
				if !stream || members != "" {
					continue
				}
				id := finalID(t, got)
				for range 2 {
					if later, _ := a.ask(200, "acme", "GET", "/responses/"+id, ""); !strings.Contains(final(got), later) {
						t.Errorf("read later it is %s, was %s", later, final(got))
					}
				}
			}
		}
		id := a.get("POST", "/responses", `{"model":"wood","background":true,"input":"Think."}`)["id"].(string)
		eventually(t, "the end in the background", func() bool { return a.status(id) == "incomplete" })
		for _, other := range []*api{a, a.again()} {
			if got, _ := other.ask(200, "acme", "GET", "/responses/"+id, ""); !strings.Contains(got, `"incomplete_details":{"reason":"`+want+`"}`) || !strings.Contains(got, `"total_tokens":7`) || !strings.Contains(got, `"error":null`) {
				t.Errorf("in the background: %s", got)
			}
		}
		for _, members := range []string{``, store} {
			for _, stream := range []string{``, `"stream":true,"stream_options":{"include_usage":true},`} {
				status, got, _ := a.send("acme", "POST", "/chat/completions", chatBody(members+stream, said("user", "Think.")))
				if status != 200 || !strings.Contains(got, `"finish_reason":"`+reason+`"`) || strings.Contains(got, `"error"`) || !strings.Contains(got, `"total_tokens":7`) {
					t.Errorf("%s %q%q: %d %s", reason, members, stream, status, got)
				}
			}
		}
	}
	a.upstream.Otherwise(blank("stop"))
	if status, got, _ := a.send("acme", "POST", "/responses", `{"model":"wood","input":"Think."}`); status != 502 {
		t.Errorf("a blank answer: %d %s", status, got)
	}
}

// A model that came to its limit amid its thoughts, or amid a call, gives an
// incomplete answer, whose stream is whole.
func TestCutBeforeTheText(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	chunks := func(deltas ...string) llmtest.Behaviour {
		var all strings.Builder
		for _, d := range deltas {
			all.WriteString(`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"wood","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` + "\n\n")
		}
		return llmtest.Raw(200, "text/event-stream", all.String()+`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"wood","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`+"\n\ndata: [DONE]\n\n")
	}
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
		a.upstream.Otherwise(chunks(test.deltas...))
		got, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","stream":true,"input":"`+name+`","tools":[{"type":"function","name":"f"}]}`)
		if !strings.Contains(got, "event: response.incomplete\n") || strings.Contains(got, "event: response.failed\n") || strings.Count(final(got), `"id":"`)-1 != test.items {
			t.Errorf("%s: %s", name, got)
		}
		if opened, closed := strings.Count(got, "event: response.output_item.added\n"), strings.Count(got, "event: response.output_item.done\n"); opened != closed {
			t.Errorf("%s: %d items begin, and %d end: %s", name, opened, closed, got)
		}
		if later, _ := a.ask(200, "acme", "GET", "/responses/"+finalID(t, got), ""); !strings.Contains(final(got), later) {
			t.Errorf("%s: later it is %s, was %s", name, later, final(got))
		}
		for _, members := range []string{``, store} {
			status, got, _ := a.send("acme", "POST", "/chat/completions", chatBody(members+`"stream":true,`, said("user", name)))
			if status != 200 || !strings.Contains(got, `"finish_reason":"length"`) || !strings.HasSuffix(got, "data: [DONE]\n\n") {
				t.Errorf("%s: %d %s", name, status, got)
			}
		}
	}
}
