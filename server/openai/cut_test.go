package openai_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
)

// TestNoCutWithoutAWord continues a branch that its window can't hold whole: it is
// answered only if the client asked for truncation, and counted whole.
func TestNoCutWithoutAWord(t *testing.T) {
	t.Parallel()
	settings := summarize.Defaults()
	settings.MaxContextTokens, settings.ReservedTokens, settings.Compaction = 3000, 300, summarize.ModeOff
	a := setup{contexts: summarize.Config{Settings: settings}, script: []llmtest.Behaviour{llmtest.Answer("Hazel.")}}.serve(t)
	a.upstream.Otherwise(llmtest.Answer("Hazel."))
	previous := ""
	for range 5 {
		r := a.create(`{"model":"wood","truncation":"auto","input":"` + strings.Repeat("Hazel grows again after it was cut. ", 100) + `"` + previous + `}`)
		previous = `,"previous_response_id":"` + r.ID + `"`
	}
	ask := `{"model":"wood","input":"And now?"` + previous
	for path, members := range map[string]string{"/responses": `,"store":false}`, "/responses ": `,"store":false,"stream":true}`, "/responses/compact": `}`} {
		if got, _ := a.ask(400, "acme", "POST", strings.TrimSpace(path), ask+members); !strings.Contains(got, `"code":"context_length_exceeded"`) || !strings.Contains(got, `"param":"input"`) {
			t.Errorf("%s: %s", path, got)
		}
	}
	a.ask(200, "acme", "POST", "/responses", ask+`,"store":false,"truncation":"auto"}`)
	if n := a.get("POST", "/responses/input_tokens", ask+`}`)["input_tokens"].(float64); n < 5*700 {
		t.Errorf("%v tokens are counted", n)
	}
}
