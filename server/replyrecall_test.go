package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestRecallWithinAReply holds that the events of a reply tell of each message
// that stands between the head and the answer, that a reader who comes back reads
// on, and that the context of the route is what the model read.
func TestRecallWithinAReply(t *testing.T) {
	t.Parallel()
	search := llmtest.ToolCall{ID: "r", Name: "recall", Arguments: `{"query":"why is a coppice cut?"}`}
	upstream := llmtest.NewServer(t, llmtest.SayAndCall("Let me look.", search), llmtest.Answer("So that it grows again."))
	a := newAPI(t, withModels(nil, model(t, upstream)))
	plant(t, a.store, "c")
	l := a.listen(t.Context(), ask(replyPathOf, `{"id":"{{first}}","recall":true}`))
	var told []string // roles
	for l.end == nil {
		e, err := l.next()
		if err != nil {
			t.Fatal(err)
		}
		if e.name == "reply.message" {
			var data struct {
				Message struct{ Role string }
			}
			if err := json.Unmarshal([]byte(e.data), &data); err != nil {
				t.Fatal(err)
			}
			told = append(told, data.Message.Role)
		}
	}
	if fmt.Sprint(told) != "[assistant tool]" || l.text != "Let me look.\n\nSo that it grows again." || l.stored().Content != l.text {
		t.Errorf("told of %v, and %q", told, l.text)
	}
	if !strings.Contains(l.end.data, `"recalled":2`) || !strings.Contains(l.end.data, fill(`"head_id":"{{c.thanks}}"`)) || !strings.Contains(l.end.data, `"usage":{"prompt_tokens":14`) {
		t.Errorf("the end is %s", l.end.data)
	}
	// What the model read first is the context that the route gives for recall.
	first := upstream.Requests()[0]
	read := a.must(200, nil, request{method: "GET", path: fill(conversationPathOf + "/branches/{{c.thanks}}/context?recall=true")}).body
	if messages := fmt.Sprintf("%s", first.Messages); !strings.Contains(string(read), strings.ReplaceAll(strings.Trim(messages, "[]"), "} {", "},{")) || !strings.Contains(messages, "function recall") {
		t.Errorf("the model read %s, the context is %s", messages, read)
	}
	if plain := a.must(200, nil, request{method: "GET", path: fill(conversationPathOf + "/branches/{{c.thanks}}/context")}).body; strings.Contains(string(plain), "function recall") {
		t.Errorf("the context is %s", plain)
	}
	if found := string(upstream.Requests()[1].Body); !strings.Contains(found, "why \\u003ccut\\u003e it") && !strings.Contains(found, "why <cut> it") || strings.Contains(found, "No idea") || strings.Contains(found, "hazel, ash, oak") {
		t.Errorf("the model read %s", found)
	}
	// From the second message on.
	again := a.listen(t.Context(), request{method: "GET", path: fill(conversationPathOf + "/replies/{{first}}/events"), header: map[string]string{"Last-Event-ID": "1"}})
	again.last = 1
	if end := again.toEnd(); end.data != l.end.data || again.text != l.text {
		t.Errorf("again %q and %s", again.text, end.data)
	}
	// The same id once more makes nothing new.
	a.must(200, nil, ask(replyPathOf, `{"id":"{{first}}","recall":true,"stream":false}`))
	if n := len(upstream.Requests()); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}
