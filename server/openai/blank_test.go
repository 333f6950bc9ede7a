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
