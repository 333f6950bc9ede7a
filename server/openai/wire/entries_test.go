package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

// parseInput reads the input of a request.
func parseInput(input string) (Input, error) {
	req, err := ParseCreate([]byte(`{"model":"m","input":` + input + `}`))
	if err != nil {
		return Input{}, err
	}
	return req.Input, nil
}

// show writes entries, a line each.
func show(in Input) string {
	var lines []string
	for _, e := range in.Entries {
		line := fmt.Sprint(e.At)
		if kind, _, refers := strings.Cut(e.Reference, "_"); refers {
			line += " ref " + kind
		} else if e.Node != (NodeID{}) {
			line += " known"
		}
		if e.Compaction != nil && e.Compaction.Text != "" {
			line += " compaction " + e.Compaction.Text
		}
		if e.Phase != "" {
			line += " " + e.Phase
		}
		if e.Message != nil {
			line += " " + string(e.Message.Raw)
			if e.Message.Reasoning != "" {
				line += " thought " + e.Message.Reasoning
			}
		}
		lines = append(lines, line)
	}
	if in.Compact {
		lines = append(lines, "compact")
	}
	return strings.Join(lines, "\n")
}

func TestEntries(t *testing.T) {
	t.Parallel()
	replacer := strings.NewReplacer(
		"{msg}", someNode.item(KindMessage, 1), "{rs}", someNode.item(KindReasoning, 0), "{other}", NodeID{someNode.Conversation, someNode.Conversation}.item(KindMessage, 1), "{fc}", someNode.item(KindCall, 2), "{cmp}", someSummary.item(KindCompaction, 1), "{abc}", Compaction{Text: "abc"}.Content(),
	)
	const call = `"function":{"name":"f","arguments":"{}"}}`
	for _, test := range []struct{ name, input, want string }{
		{"a string", `"hi <3"`, `0 {"role":"user","content":"hi <3"}`},
		{"easy messages", `[{"role":"system","content":"Be short."},{"role":"user","content":"hi"},{"role":"assistant","content":"Hello."},{"role":"developer","content":[{"type":"input_text","text":"x"}]}]`,
			"0 {\"role\":\"system\",\"content\":\"Be short.\"}\n1 {\"role\":\"user\",\"content\":\"hi\"}\n2 {\"role\":\"assistant\",\"content\":\"Hello.\"}\n3 {\"role\":\"developer\",\"content\":\"x\"}"},
		{"a client's id", `[{"type":"message","id":"msg_6ad3","role":"user","content":"hi"}]`, `0 {"role":"user","content":"hi"}`},
		{"parts", `[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AA","detail":"low"},{"type":"input_file","filename":"a.pdf","file_data":"data:,x"},{"type":"input_image","image_url":"https://example.org/a.png","file_id":null}]}]`,
			`0 {"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA","detail":"low"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:,x"}},{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]}`},
		{"one turn", `[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"x"},
			{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"Let me look.","annotations":[],"logprobs":[]}]},
			{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{}","status":"completed"},{"type":"function_call","call_id":"b","name":"f","namespace":"n","arguments":""},
			{"type":"function_call_output","id":"fco_1","call_id":"a","output":"1"},{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"2"}]},
			{"type":"message","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"A"},{"type":"output_text","text":"B"},{"type":"refusal","refusal":"No."}]}]`,
			`0 commentary {"role":"assistant","content":"Let me look.","tool_calls":[{"id":"a","type":"function",` + call + `,{"id":"b","type":"function","function":{"name":"n__f","arguments":""}}]} thought Hm.` +
				"\n4 {\"role\":\"tool\",\"content\":\"1\",\"tool_call_id\":\"a\"}\n5 {\"role\":\"tool\",\"content\":\"2\",\"tool_call_id\":\"b\"}\n" +
				`6 final_answer {"role":"assistant","content":[{"type":"text","text":"A"},{"type":"text","text":"B"}],"refusal":"No."}`},
		{"raw reasoning", `[{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]},{"role":"assistant","content":"A"}]`, `0 {"role":"assistant","content":"A"} thought Hm.`},
		{"reasoning that cannot be read", `[{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"role":"user","content":"ho"}]`,
			"0 {\"role\":\"user\",\"content\":\"hi\"}\n2 {\"role\":\"user\",\"content\":\"ho\"}"},
		{"an empty result", `[{"type":"function_call_output","call_id":"a","output":""},{"type":"function_call_output","call_id":"b","output":[]}]`,
			"0 {\"role\":\"tool\",\"content\":\"\",\"tool_call_id\":\"a\"}\n1 {\"role\":\"tool\",\"content\":\"\",\"tool_call_id\":\"b\"}"},
		{"references", `[{"role":"user","content":"hi"},{"type":"item_reference","id":"{rs}"},{"id":"{msg}"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"1"},{"type":null,"id":"{msg}"},{"type":"item_reference","id":"{other}"},{"type":"item_reference","id":"{cmp}"},{"role":"assistant","content":"A"}]`,
			"0 {\"role\":\"user\",\"content\":\"hi\"}\n1 ref rs {\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\"," + call + "]}\n4 {\"role\":\"tool\",\"content\":\"1\",\"tool_call_id\":\"a\"}\n6 ref msg\n7 ref cmp\n8 {\"role\":\"assistant\",\"content\":\"A\"}"},
		{"tools of the client", `[{"type":"additional_tools","role":"developer","tools":[]},{"type":"custom_tool_call","call_id":"a","namespace":"n","name":"f","input":"x\"y"},{"type":"tool_search_call","call_id":"b","arguments":{"q":1}},{"type":"custom_tool_call_output","call_id":"a","output":"1"},{"type":"tool_search_output","call_id":"b","tools":[{"type":"function","name":"g"}]},{"type":"tool_search_call","call_id":null,"execution":"server","arguments":{}}]`,
			`1 {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"n__f","input":"x\"y"}},{"id":"b","type":"function","function":{"name":"tool_search","arguments":"{\"q\":1}"}}]}` +
				"\n3 {\"role\":\"tool\",\"content\":\"1\",\"tool_call_id\":\"a\"}\n4 {\"role\":\"tool\",\"content\":\"These tools can be called now: g.\",\"tool_call_id\":\"b\"}"},
		{"each call with its output", `[{"type":"function_call","id":"{fc}","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"1"},{"type":"function_call","id":"{fc}","call_id":"b","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"b","output":"2"}]`,
			`0 known {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function",` + call + `,{"id":"b","type":"function",` + call + "]}\n" + `1 {"role":"tool","content":"1","tool_call_id":"a"}` + "\n" + `3 {"role":"tool","content":"2","tool_call_id":"b"}`},
		{"a message beside one with an id", `[{"role":"assistant","id":"{msg}","content":"a"},{"role":"assistant","id":"{other}","content":"b"},{"role":"assistant","content":"c"}]`,
			`0 known {"role":"assistant","content":"a"}` + "\n" + `1 known {"role":"assistant","content":"b"}` + "\n" + `2 {"role":"assistant","content":"c"}`},
		{"an item twice in a row", `[{"type":"item_reference","id":"{msg}"},{"role":"assistant","id":"{msg}","content":"a"}]`, `0 ref msg {"role":"assistant","content":"a"}`},
		{"compaction", `[{"type":"compaction","id":null,"encrypted_content":"{abc}"},{"role":"user","content":"hi"},{"type":"compaction_trigger"}]`, "0 compaction abc\n1 {\"role\":\"user\",\"content\":\"hi\"}\ncompact"},
	} {
		in, err := parseInput(replacer.Replace(test.input))
		check.NoError(t, err)
		check.Equal(t, test.name, show(in), test.want)
	}
}

func TestEntriesRefuse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ input, code, param string }{
		{`7`, reader.CodeType, "input"},
		{`[]`, reader.CodeMissing, "input"},
		{`[{"type":"reasoning","summary":[]}]`, reader.CodeMissing, "input"},
		{`""`, "empty_content", "input[0].content"},
		{`[{"role":"user","content":"a"},null]`, reader.CodeType, "input[1]"},
		{`[{"type":7}]`, reader.CodeType, "input[0].type"},
		{`[{"type":"message","content":"x"}]`, reader.CodeMissing, "input[0].role"},
		{`[{"role":"tool","content":"x"}]`, reader.CodeValue, "input[0].role"},
		{`[{"role":"user"}]`, reader.CodeMissing, "input[0].content"},
		{`[{"role":"user","content":" "}]`, "empty_content", "input[0].content"},
		{`[{"role":"user","content":["x"]}]`, reader.CodeType, "input[0].content[0]"},
		{`[{"role":"user","content":[{"type":"input_text"}]}]`, reader.CodeMissing, "input[0].content[0].text"},
		{`[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_audio"}]}]`, reader.CodeUnsupported, "input[0].content[1].type"},
		{`[{"role":"system","content":[{"type":"input_image","image_url":"data:,x"}]}]`, reader.CodeUnsupported, "input[0].content[0].type"},
		{`[{"role":"user","content":[{"type":"input_image","file_id":"file_1"}]}]`, reader.CodeUnsupported, "input[0].content[0].file_id"},
		{`[{"role":"user","content":[{"type":"input_image","image_url":"file:///etc/passwd"}]}]`, reader.CodeValue, "input[0].content[0].image_url"},
		{`[{"role":"user","content":[{"type":"input_image","image_url":"data:,x","detail":"huge"}]}]`, reader.CodeValue, "input[0].content[0].detail"},
		{`[{"role":"user","content":[{"type":"input_file","file_url":"https://example.org/a"}]}]`, reader.CodeUnsupported, "input[0].content[0].file_url"},
		{`[{"role":"user","content":[{"type":"input_file"}]}]`, reader.CodeMissing, "input[0].content[0].file_data"},
		{`[{"role":"assistant","content":"a","phase":"loud"}]`, reader.CodeValue, "input[0].phase"},
		{`[{"type":"function_call","name":"f","arguments":"{}"}]`, reader.CodeMissing, "input[0].call_id"},
		{`[{"type":"function_call","call_id":"a","name":"f","arguments":{}}]`, reader.CodeType, "input[0].arguments"},
		{`[{"type":"function_call","call_id":"a","name":"f","arguments":""},{"type":"function_call","call_id":"a","name":"f","arguments":""}]`, "invalid_tool_calls", "input[0]"},
		{`[{"type":"function_call_output","call_id":"a"}]`, reader.CodeMissing, "input[0].output"},
		{`[{"type":"item_reference"}]`, reader.CodeMissing, "input[0].id"},
		{`[{"type":"item_reference","id":"msg_123"}]`, "item_not_found", "input[0].id"},
		{`[{"type":"compaction","id":"cmp_1"}]`, reader.CodeMissing, "input[0].encrypted_content"},
		{`[{"type":"compaction_trigger"},{"role":"user","content":"a"}]`, reader.CodeValue, "input[1]"},
		{`[{"type":"item_reference","id":"` + someNode.item(KindMessage, 1) + `"},{"role":"user","content":"a"},{"role":"assistant","id":"` + someNode.item(KindMessage, 1) + `","content":"b"}]`, reader.CodeValue, "input"}, // one item twice
		{`[{"type":"reasoning","summary":"x"}]`, reader.CodeType, "input[0].summary"},
		{`[{"type":"web_search_call","id":"ws_1"}]`, reader.CodeUnsupported, "input[0].type"},
		{`[` + strings.Repeat(`{"role":"user","content":"a"},`, maxItems) + `{"role":"user","content":"a"}]`, reader.CodeValue, "input"},
		{`"` + strings.Repeat("é", maxInputText+1) + `"`, reader.CodeValue, "input"},
	} {
		in, err := parseInput(test.input)
		refused(t, test.input+show(in), err, fault.Invalid, test.code, test.param)
	}
}

// refused holds that a body is refused, and that the error says where and why.
func refused(t *testing.T, body string, err error, kind fault.Kind, code, param string) {
	t.Helper()
	e := fault.Of(err)
	check.That(t, e != nil && e.Kind == kind && e.Code == code && e.Field == param && e.Detail != "" && len(e.Detail) <= 300,
		"%.200s: %+v, want %s at %q", body, e, code, param)
}

// aMessage draws a message as it is stored.
func aMessage(t *rapid.T) *chat.Message {
	word := rapid.StringOfN(rapid.SampledFrom([]rune("ab \"\\\n<é🌳")), 0, 8, -1)
	text := rapid.Map(word, func(s string) string { return "x" + s })
	var reasoning string
	w := &chat.Message{Role: rapid.SampledFrom([]chat.Role{chat.User, chat.System, chat.Developer, chat.Assistant, chat.Assistant, chat.Tool}).Draw(t, "role")}
	switch w.Role {
	case chat.Assistant:
		for _, said := range rapid.SliceOfN(text, 0, 2).Draw(t, "texts") {
			w.Parts = append(w.Parts, chat.TextPart(said))
		}
		if rapid.Bool().Draw(t, "refuses") {
			refusal := text.Draw(t, "refusal")
			w.Refusal = &refusal
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "calls") {
			w.Calls = append(w.Calls, chat.Call{ID: fmt.Sprint("call_", i), Name: "f", Arguments: word.Draw(t, "arguments"), Custom: rapid.Bool().Draw(t, "custom")})
		}
		if len(w.Parts) == 0 && w.Refusal == nil && len(w.Calls) == 0 {
			w.Parts = []chat.Part{chat.TextPart("x")}
		}
		if rapid.Bool().Draw(t, "reasons") {
			reasoning = "r" + strings.TrimSpace(word.Draw(t, "reasoning"))
		}
	case chat.Tool:
		call := "call_0"
		w.CallID, w.Parts = &call, []chat.Part{chat.TextPart(word.Draw(t, "result"))}
	default:
		w.Parts = []chat.Part{chat.TextPart(text.Draw(t, "text"))}
		if w.Role == chat.User && rapid.Bool().Draw(t, "parts") {
			w.Parts = append(w.Parts, chat.ReadPart(json.RawMessage(`{"type":"image_url","image_url":{"url":"data:,x","detail":"auto"}}`)), chat.ReadPart(json.RawMessage(`{"type":"file","file":{"filename":"a","file_data":"data:,y"}}`)))
		}
	}
	m := message(t, string(w.Encode()))
	m.Reasoning = reasoning
	return m
}

// nodeAt is a node of its own for each number.
func nodeAt(i int) NodeID {
	n := someNode
	n.Node[15] = byte(i)
	return n
}

// The items of a stored message, sent back, are the same message.
func TestItemsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all []Item
		var messages []*chat.Message
		for range rapid.IntRange(1, 4).Draw(t, "messages") {
			m := aMessage(t)
			if n := len(messages); n > 0 && m.Role == chat.Assistant && messages[n-1].Role == chat.Assistant {
				continue // which would be one turn
			}
			messages = append(messages, m)
			all = append(all, ItemsOf(nodeAt(len(messages)), m, Note{})...)
		}
		ids := map[string]bool{}
		in, err := parseInput(string(chat.MustMarshal(all)))
		if err != nil {
			t.Fatalf("%s: %v", chat.MustMarshal(all), err)
		}
		check.Need(t, len(in.Entries) == len(messages), "%d messages became %d: %+v", len(messages), len(in.Entries), all)
		for i, e := range in.Entries {
			check.Equal(t, "a message", string(e.Message.Raw)+e.Message.Reasoning, string(messages[i].Raw)+messages[i].Reasoning)
			clear(ids)
			for _, item := range ItemsOf(e.Node, messages[i], Note{}) {
				id, err := ParseItemID(item.ID)
				check.Need(t, err == nil && id.NodeID == nodeAt(i+1) && !ids[item.ID], "%s: %v", item.ID, err)
				ids[item.ID] = true
			}
		}
	})
}

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
		got := (Entry{Message: m}).Rest(stored)
		check.That(t, (got == m) == more && (got == nil) == !more, "%s says more than what is stored: %t, want %t", raw, got != nil, more)
	}
	check.That(t, (Entry{}).Rest(stored) == nil, "a reference alone says something")
	m := message(t, `{"role":"assistant","content":"A"}`)
	check.That(t, (Entry{Message: m}).Rest(message(t, `{"role":"user","content":"A"}`)) == m, "an answer was taken for a user's message")
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
