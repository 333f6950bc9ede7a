package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/internal/check"
)

// TestChunksOfCalls holds that a chunk has one piece of a call, with the members that
// only the provider knows. A stored call gets its number.
func TestChunksOfCalls(t *testing.T) {
	t.Parallel()
	const numbered, whole = `{"index":1,"id":"a","extra_content":{"s":1},"function":{"name":"f","arguments":"{"}}`, `{"id":"b","function":{"name":"g","arguments":""}}`
	out := string(NewChunks(Turn{Node: someNode, CreatedAt: someTime, Echo: NewEcho("m")}, false).Add(nil, sdk.Delta{Calls: []json.RawMessage{json.RawMessage(whole), json.RawMessage(numbered)}}))
	for _, want := range []string{`"tool_calls":[{"index":0,` + whole[1:] + `]}`, `"tool_calls":[` + numbered + `]}`} {
		check.Equal(t, fmt.Sprintf("chunks with %s in %s", want, out), strings.Count(out, want), 1)
	}
}

func TestRest(t *testing.T) {
	t.Parallel()
	const call = `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`
	stored := message(t, `{"role":"assistant","content":"Let me look.","tool_calls":[`+call+`]}`)
	for raw, more := range map[string]bool{
		`{"role":"assistant","content":null,"tool_calls":[` + call + `]}`:                                   false,
		`{"role":"assistant","content":"Let me look.","tool_calls":[` + call + `]}`:                         false,
		`{"role":"assistant","content":"Let me look."}`:                                                     false,
		`{"role":"assistant","content":"Something else."}`:                                                  true,
		`{"role":"assistant","content":null,"tool_calls":[` + strings.Replace(call, `"a"`, `"b"`, 1) + `]}`: true,
		`{"role":"assistant","content":"Let me look. Now.","tool_calls":[` + call + `]}`:                    true,
	} {
		m := message(t, raw)
		if got := (Entry{Message: m}).Rest(stored); (got == m) != more || got == nil == more {
			t.Errorf("%s says more than what is stored: %t, want %t", raw, got != nil, more)
		}
	}
	if (Entry{}).Rest(stored) != nil {
		t.Error("a reference alone says something")
	}
	if m := message(t, `{"role":"assistant","content":"A"}`); (Entry{Message: m}).Rest(message(t, `{"role":"user","content":"A"}`)) != m {
		t.Error("an answer was taken for a user's message")
	}
}

func TestCheckCalls(t *testing.T) {
	t.Parallel()
	const calls = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}},{"id":"b","type":"function","function":{"name":"f","arguments":""}}]}`
	const a, b, user = `{"role":"tool","tool_call_id":"a","content":""}`, `{"role":"tool","tool_call_id":"b","content":""}`, `{"role":"user","content":"hi"}`
	for _, test := range []struct {
		pending, messages []string
		want              string
	}{
		{nil, nil, ""}, {nil, []string{user}, ""},
		{nil, []string{calls, b, a, user}, ""}, {nil, []string{calls, a}, ""}, {nil, []string{calls}, ""},
		{[]string{"a", "b"}, []string{a, b, user}, ""}, {[]string{"a"}, []string{a, calls, a, b}, ""},
		{nil, []string{a}, "No tool call found for function call output with call_id a."},
		{nil, []string{calls, a, a}, "No tool call found for function call output with call_id a."},
		{nil, []string{calls, a, b, user, a}, "No tool call found for function call output with call_id a."},
		{nil, []string{calls, a, user}, "No tool output found for function call b."},
		{[]string{"a"}, []string{user}, "No tool output found for function call a."},
	} {
		var messages []*chat.Message
		for _, raw := range test.messages {
			messages = append(messages, message(t, raw))
		}
		got := ""
		if err := CheckCalls(test.pending, messages); err != nil {
			got = strings.TrimPrefix(err.Error(), "input: ")
		}
		check.Equal(t, fmt.Sprintf("%v, %v", test.pending, test.messages), got, test.want)
	}
}
