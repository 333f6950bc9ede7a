package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/llm"
)

// TestCallsAreThoseOfTheStoredMessage holds that the pieces of calls, as servers
// cut and number them, are put together here as package llm puts them together:
// the items of the stream are those of the message that is stored.
func TestCallsAreThoseOfTheStoredMessage(t *testing.T) {
	t.Parallel()
	for name, pieces := range map[string][]string{
		"numbered":         {`[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]`, `[{"index":0,"function":{"arguments":"{\"x\""}}]`, `[{"index":0,"function":{"arguments":":1}"}}]`, `[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]`},
		"interleaved":      {`[{"index":0,"id":"a","function":{"name":"f"}},{"index":1,"id":"b","function":{"name":"g"}}]`, `[{"index":1,"function":{"arguments":"[1"}},{"index":0,"function":{"arguments":"[0"}}]`, `[{"index":0,"function":{"arguments":"]"}},{"index":1,"function":{"arguments":"]"}}]`},
		"not numbered":     {`[{"id":"a","function":{"name":"f","arguments":"{"}}]`, `[{"function":{"arguments":"}"}}]`, `[{"id":"b","function":{"name":"g","arguments":"{}"}}]`},
		"all numbered 0":   {`[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`, `[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]`},
		"an id each piece": {`[{"index":0,"id":"a1","function":{"name":"f","arguments":"{"}}]`, `[{"index":0,"id":"a2","function":{"arguments":"}"}}]`},
		"the name late":    {`[{"index":0,"id":"a","function":{"arguments":"{"}}]`, `[{"index":0,"function":{"name":"f","arguments":"}"}}]`},
		"the id late":      {`[{"index":0,"function":{"name":"f","arguments":"{"}}]`, `[{"index":1,"id":"b","function":{"name":"g","arguments":""}}]`, `[{"index":0,"id":"a","function":{"arguments":"}"}}]`},
		"NUL":              {`[{"index":0,"id":"a","function":{"name":"f","arguments":"{\u0000}"}}]`},
		"members unknown":  {`[{"index":0,"id":"a","extra_content":{"signature":"x"},"function":{"name":"f","arguments":"{}"}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var deltas []Delta
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n")
				for _, piece := range pieces {
					fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":%s}}]}\n\n", piece)
				}
				fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n")
			}))
			defer web.Close()
			model, err := llm.NewOpenAI(llm.OpenAIConfig{BaseURL: web.URL, Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			res, err := model.Stream(t.Context(), llm.Request{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"hi"}`)}}, func(d llm.Delta) error {
				var calls []json.RawMessage
				if d.ToolCalls != nil {
					if err := json.Unmarshal(d.ToolCalls, &calls); err != nil {
						return err
					}
				}
				deltas = append(deltas, Delta{Text: d.Content, Calls: calls})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			turn := Turn{Node: someNode, CreatedAt: someTime, Echo: NewEcho("m")}
			all := events(t, live(turn, deltas, End{Status: Completed, At: someTime, Message: chat.Read(res.Message), FinishReason: res.FinishReason}, -1))
			streamed, stored := string(Marshal(doneItems(all))), string(Marshal(all[len(all)-1].Response.Output))
			if streamed != stored || !strings.Contains(stored, `"function_call"`) {
				t.Errorf("the items were\n%s\nand the response has\n%s", streamed, stored)
			}
		})
	}
}

// TestChunksOfCalls holds that a chunk has one piece of a call, with the members that
// only the provider knows. A stored call gets its number.
func TestChunksOfCalls(t *testing.T) {
	t.Parallel()
	const numbered, whole = `{"index":1,"id":"a","extra_content":{"s":1},"function":{"name":"f","arguments":"{"}}`, `{"id":"b","function":{"name":"g","arguments":""}}`
	out := string(NewChunks(Turn{Node: someNode, CreatedAt: someTime, Echo: NewEcho("m")}, false).Add(nil, Delta{Calls: []json.RawMessage{json.RawMessage(whole), json.RawMessage(numbered)}}))
	for _, want := range []string{`"tool_calls":[{"index":0,` + whole[1:] + `]}`, `"tool_calls":[` + numbered + `]}`} {
		if strings.Count(out, want) != 1 {
			t.Errorf("no chunk has %s: %s", want, out)
		}
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
		if got != test.want {
			t.Errorf("%v, %v: %q, want %q", test.pending, test.messages, got, test.want)
		}
	}
}
