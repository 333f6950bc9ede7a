package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// Servers show what a model thought under two names, in parts of the content, and
// within its text.
func TestReasoning(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		message string   // of a server that doesn't stream
		deltas  []string // of one that does
		reason  string
		text    string
	}{
		"reasoning_content": {`{"reasoning_content":"They greet me.","content":"Hello."}`,
			[]string{`{"role":"assistant","content":null,"reasoning_content":"They greet"}`, `{"reasoning_content":" me.","content":""}`, `{"content":"Hello."}`}, "They greet me.", "Hello."},
		"reasoning": {`{"reasoning":"They greet me.","content":"Hello."}`,
			[]string{`{"reasoning":"They greet","content":""}`, `{"reasoning":" me."}`, `{"content":"Hello.","reasoning":null}`}, "They greet me.", "Hello."},
		"both names, which say the same": {`{"reasoning":"Hm.","reasoning_content":"Hm.","content":"Hello."}`,
			[]string{`{"reasoning":"Hm.","reasoning_content":"Hm."}`, `{"content":"Hello."}`}, "Hm.", "Hello."},
		"of another type": {`{"reasoning":{"effort":"low"},"reasoning_content":7,"content":"Hello."}`,
			[]string{`{"reasoning":{"effort":"low"},"reasoning_content":7,"content":"Hello."}`}, "", "Hello."},
		"parts of the content": {`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"They greet"},{"type":"text","text":" me."}]},{"type":"text","text":"Hello."}]}`,
			[]string{`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"They greet"}]}]}`, `{"content":[{"type":"thinking","thinking":" me."}]}`, `{"content":[{"type":"text","text":"Hello."}]}`},
			"They greet me.", "Hello."},
		"within the text": {`{"content":"\n<think>\nThey greet me.\n</think>\n\nHello."}`,
			[]string{`{"content":"\n"}`, `{"content":"<th"}`, `{"content":"ink>\nThey greet"}`, `{"content":" me.\n</thi"}`, `{"content":"nk>"}`, `{"content":"\n\n"}`, `{"content":"Hello."}`},
			"\nThey greet me.\n", "Hello."},
		"within the text under another name": {`{"content":"<thinking>Hm.</thinking>Hello."}`, []string{`{"content":"<thinking>Hm.</think"}`, `{"content":"ing>Hello."}`}, "Hm.", "Hello."},
		"a tag behind the beginning": {`{"content":"The tag <think>x</think> begins it."}`,
			[]string{`{"content":"The tag <thi"}`, `{"content":"nk>x</think> begins it."}`}, "", "The tag <think>x</think> begins it."},
		"a second element":                    {`{"content":"<think>a</think><think>b</think>c"}`, []string{`{"content":"<think>a</think><think>"}`, `{"content":"b</think>c"}`}, "a", "<think>b</think>c"},
		"no more than the beginning of a tag": {`{"content":" <thin"}`, []string{`{"content":" <th"}`, `{"content":"in"}`}, "", " <thin"},
		"a tag where the server has told the two apart": {`{"reasoning":"Hm.","content":"<think> is a tag."}`,
			[]string{`{"content":"<th"}`, `{"reasoning":"Hm."}`, `{"content":"ink> is a tag."}`}, "Hm.", "<think> is a tag."},
		"NUL": {`{"reasoning":"H\u0000m.","content":"Hello."}`, []string{`{"reasoning":"H\u0000m."}`, `{"content":"Hello."}`}, "Hm.", "Hello."},
		"beside calls": {`{"reasoning":"Hm.","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			[]string{`{"reasoning":"Hm."}`, `{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`}, "Hm.", ""},
	} {
		t.Run(name+"/complete", func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t, llmtest.Raw(200, "application/json", `{"choices":[{"message":`+test.message+`,"finish_reason":"stop"}]}`))
			res, err := client(t, s).Complete(deadline(t, timeout), request())
			wantThought(t, res, err, test.reason, test.text)
		})
		t.Run(name+"/stream", func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t, events(finish+done, test.deltas...))
			var reason, text strings.Builder
			res, err := client(t, s).Stream(deadline(t, timeout), request(), func(d llm.Delta) error {
				reason.WriteString(d.Reasoning)
				text.WriteString(d.Content)
				return nil
			})
			wantThought(t, res, err, test.reason, test.text)
			if reason.String() != test.reason || text.String() != test.text {
				t.Errorf("the pieces are %q and %q", reason.String(), text.String())
			}
		})
	}
}

func wantThought(t *testing.T, res llm.Response, err error, reason, text string) {
	t.Helper()
	check.NoError(t, err)
	var m map[string]json.RawMessage
	if json.Unmarshal(res.Message, &m) != nil || m["reasoning"] != nil || m["reasoning_content"] != nil {
		t.Errorf("the message is %s", res.Message)
	}
	if res.Reasoning != reason || res.Text != text {
		t.Errorf("reasoning %q, text %q; want %q, %q", res.Reasoning, res.Text, reason, text)
	}
}

// A model that thinks until its tokens are spent gave no answer, and what it
// thought is there all the same.
func TestReasoningAlone(t *testing.T) {
	t.Parallel()
	const cut = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n"
	for _, delta := range []string{`{"reasoning":"Hm. Well."}`, `{"content":"<think>Hm. Well."}`} {
		s := llmtest.NewServer(t, events(cut+done, delta))
		res, err := client(t, s).Stream(deadline(t, timeout), request(), func(llm.Delta) error { return nil })
		e := wantError(t, err, llm.ErrBadResponse)
		if res.Reasoning != "Hm. Well." || res.Message != nil || !strings.Contains(e.Detail, "the model thought") || !strings.Contains(e.Detail, "length") {
			t.Errorf("%+v: %v", res, err)
		}
	}
}

// Reasoning counts to the limit of an answer.
func TestReasoningIsBounded(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, events(finish+done, `{"reasoning":"`+strings.Repeat("x", 700)+`"}`, `{"content":"`+strings.Repeat("y", 400)+`"}`))
	c := client(t, s, func(config *llm.OpenAIConfig) { config.MaxAnswerBytes = 1000 })
	res, err := c.Stream(deadline(t, timeout), request(), func(llm.Delta) error { return nil })
	wantError(t, err, llm.ErrAnswerTooLong)
	if len(res.Reasoning) != 700 || res.Text != "" {
		t.Errorf("%d bytes of reasoning, text %q", len(res.Reasoning), res.Text)
	}
}
