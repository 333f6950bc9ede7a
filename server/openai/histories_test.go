package openai_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
)

// TestEmptyMessages holds that a message that says nothing goes to the model, where
// nothing is recorded.
func TestEmptyMessages(t *testing.T) {
	t.Parallel()
	a := newAPIWith(t, openai.Recognition{Record: true})
	a.upstream.Otherwise(llmtest.Answer("Yes."))
	for empty, recorded := range map[string]int{said("system", ""): 0, said("user", ""): 0, `{"role":"assistant","content":null}`: 0, `{"role":"assistant"}`: 0, `{"role":"user","content":[{"type":"text","text":""}]}`: 1} {
		messages := []string{empty, said("user", "Hi")}
		before := len(a.listed("acme"))
		got, _ := a.ask(200, "acme", "POST", "/chat/completions", chatBody("", messages...))
		if n := len(a.listed("acme")) - before; a.prompt() != strings.Join(messages, " ") || n != recorded {
			t.Errorf("%s: %d conversations, %s", empty, n, got)
		}
	}
}

// TestHistoryThatEndsInAnAnswer holds that a history which ends in an answer is
// answered, stored or not: some clients send what came of a stream that broke.
func TestHistoryThatEndsInAnAnswer(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer(" that is cut."))
	hi, broken := said("user", "What is a coppice?"), said("assistant", "A wood")
	for path, body := range map[string]string{"/responses": `"input":[` + hi + `,` + broken + `]`, "/chat/completions": `"messages":[` + hi + `,` + broken + `]`} {
		for _, store := range []string{"true", "false"} {
			_, header := a.ask(200, "acme", "POST", path, `{"model":"wood","store":`+store+`,`+body+`}`)
			if got := a.prompt(); !strings.HasSuffix(got, broken) || (header.Get("X-Coppice-Head-Id") != "") != (store == "true") {
				t.Errorf("%s, store %s: the model was given %s; %v", path, store, got, header)
			}
		}
	}
}
