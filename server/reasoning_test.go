package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
)

// What a model thinks is streamed by events of its own, stored, and read with the
// message: by its path, in transcripts and after a resume. No context has it.
func TestReasoning(t *testing.T) {
	t.Parallel()
	const hm, text = "They ask for <hazel>, & for nothing else.", "A wood that is cut."
	upstream := llmtest.NewServer(t, llmtest.Think(hm, text))
	a := newAPI(t, withModels(nil, model(t, upstream)))
	plant(t, a.store, "c")
	first := a.listen(t.Context(), ask(replyPathOf, `{"id":"{{first}}"}`))
	end := first.toEnd()
	var done struct {
		Message struct{ Content, Reasoning string }
		Usage   map[string]int
	}
	if err := json.Unmarshal([]byte(end.data), &done); err != nil || end.name != "reply.completed" {
		t.Fatalf("%s: %s", end.name, end.data)
	}
	if first.thought != hm || first.text != text || done.Message.Reasoning != hm || done.Message.Content != text || done.Usage["reasoning_tokens"] == 0 {
		t.Errorf("thought %q, said %q, stored %+v", first.thought, first.text, done)
	}
	again := a.listen(t.Context(), request{method: "GET", path: fill(conversationPathOf + "/replies/{{first}}/events")})
	if again.toEnd(); again.thought != hm || again.text != text {
		t.Errorf("read again: %q and %q", again.thought, again.text)
	}
	var page struct {
		Data []struct {
			Reasoning *string
		}
	}
	a.must(200, &page, request{method: "GET", path: fill(conversationPathOf + "/branches/{{first}}/transcript")})
	for i, m := range page.Data {
		if last := i == len(page.Data)-1; last != (m.Reasoning != nil) || last && *m.Reasoning != hm {
			t.Errorf("message %d of the transcript: %+v", i, m)
		}
	}
	res := a.must(200, nil, request{method: "GET", path: fill(conversationPathOf + "/branches/{{first}}/context")})
	if strings.Contains(string(res.body), "nothing else") {
		t.Errorf("the context has it: %s", res.body)
	}
}
