package messages_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

func TestMessagesShapes(t *testing.T) {
	t.Parallel()
	const a, b = `{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`
	const ab = "user: a\n*assistant: b\n"
	for name, test := range map[string]struct {
		file string
		want []string
	}{
		"array of messages":          {"[" + a + ",\n" + b + "]", []string{ab}},
		"a message a line":           {a + "\n" + b + "\n", []string{ab}},
		"one object":                 {`{"messages":[` + a + "," + b + "]}", []string{ab}},
		"one object of many lines":   {"{\n \"messages\": [\n" + a + ",\n" + b + "\n]}\n", []string{ab}},
		"array of objects":           {`[{"messages":[` + a + `]},{"messages":[` + a + "," + b + "]}]", []string{"*user: a\n", ab}},
		"arrays in an object":        {`{"data":[[` + a + "],[" + a + "," + b + "]]}", []string{"*user: a\n", ab}},
		"messages of two threads":    {`[{"thread_id":"1","role":"user","content":"a"},{"thread_id":"2","role":"user","content":"a"},{"thread_id":"1","role":"assistant","content":"b"}]`, []string{ab, "*user: a\n"}},
		"messages by their ids":      {`{"messages":{"1":` + a + `,"2":` + b + "}}", []string{ab}},
		"nothing but these":          {`{"1":` + a + `,"2":` + b + "}", []string{ab}},
		"array of arrays":            {"[[" + a + "],[" + a + "," + b + "]]", []string{"*user: a\n", ab}},
		"an array a line":            {"[" + a + "]\n[" + a + "," + b + "]\n", []string{"*user: a\n", ab}},
		"messages after an object":   {`{"messages":[` + a + "]}\n" + a + "\n" + b, []string{"*user: a\n", ab}},
		"a broken line":              {a + "\n{\"role\":\n" + b + "\n", []string{ab}},
		"a byte order mark":          {"\uFEFF" + a + "\n" + b, []string{ab}},
		"null beside what is said":   {`{"role":"assistant","content":"b","tool_calls":null,"function_call":null,"refusal":null}`, []string{"*assistant: b\n"}},
		"an array that is no object": {"[" + a + ",7," + b + "]", []string{ab}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, all := formattest.Read(t, strings.NewReader(test.file), "")
			if report.Format != "messages" || len(all) != len(test.want) {
				t.Fatalf("%d conversations of format %q: %s", len(all), report.Format, formattest.Notes(report))
			}
			for i, want := range test.want {
				formattest.Same(t, "conversation", formattest.Outline(all[i]), want)
			}
		})
	}
}

// A conversation without messages is told, wherever it stands among others.
func TestMessagesWithout(t *testing.T) {
	t.Parallel()
	report, all := formattest.Read(t, strings.NewReader(`{"data":{"chats":[{"messages":{}},{"messages":[{"role":"user","content":"a"}]},7]}}`), "")
	check.That(t, len(all) == 1, "%d conversations, want 1", len(all))
	formattest.Same(t, "notes", formattest.Notes(report), `left out conversation () line 1, data, chats 1: it has no list of messages
left out conversation () line 1, data, chats 3: it has no list of messages
`)
}

// IDs derive from what is said, however the file is laid out.
func TestMessagesIDs(t *testing.T) {
	t.Parallel()
	_, one := formattest.Read(t, strings.NewReader(`[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`), "")
	_, two := formattest.Read(t, strings.NewReader("{\"role\": \"user\", \"content\": \"a\"}\n{\"role\": \"assistant\", \"content\": \"b\"}\n"), "")
	_, longer := formattest.Read(t, strings.NewReader(`[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`), "")
	check.That(t, one[0].Conversation.ID == two[0].Conversation.ID && one[0].Nodes[1].ID == two[0].Nodes[1].ID,
		"white space changed the ids")
	check.That(t, one[0].Conversation.ID != longer[0].Conversation.ID, "another conversation has the same id")
	const named = `{"id":"0f6e1d9a-31c3-4d0a-8a55-90a3f3f1a901","messages":[{"role":"user","content":"a"}]}`
	_, short := formattest.Read(t, strings.NewReader(named), "")
	_, grown := formattest.Read(t, strings.NewReader(strings.Replace(named, "}]", `},{"role":"assistant","content":"b"}]`, 1)), "")
	check.That(t, short[0].Conversation.ID == grown[0].Conversation.ID && short[0].Nodes[0].ID == grown[0].Nodes[0].ID,
		"a conversation with an id of its own changed its id when it grew")
}

// What a model thought doesn't stay in the body, which models read.
func TestMessagesReasoning(t *testing.T) {
	t.Parallel()
	_, all := formattest.Read(t, strings.NewReader(`[{"role":"user","content":"a","reasoning":"mine"},
		{"role":"assistant","content":"b","reasoning_content":"Hm.","reasoning":"Hm."},{"role":"assistant","content":"c","reasoning":"So."},
		{"role":"assistant","content":"d","reasoning":{"effort":"low"}}]`), "")
	var got []string
	for _, n := range all[0].Nodes {
		got = append(got, n.Reasoning+" "+string(n.Body))
	}
	formattest.Same(t, "messages", strings.Join(got, "\n"), ` {"role":"user","content":"a","reasoning":"mine"}
Hm. {"content":"b","role":"assistant"}
So. {"content":"c","role":"assistant"}
 {"role":"assistant","content":"d","reasoning":{"effort":"low"}}`)
}

// Lists of messages are read as other programs and providers write them.
func TestMessagesOfPrograms(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, want string }{
		"Anthropic": {`{"model":"m","system":"S","messages":[{"role":"user","content":"q"},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"f","input":{"x":1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"r"}]},{"type":"text","text":"and?"}]}]}`,
			"system: S\nuser: q\nassistant: a [t1 f{\"x\":1}]\ntool t1: r\n*user: and?"},
		"Gemini": {`{"systemInstruction":{"parts":[{"text":"S"}]},"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"thought":true,"text":"hm"},{"functionCall":{"name":"f","args":{"x":1}}}]},
			{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"y":2}}}]},{"role":"model","parts":[{"text":"a"}]}]}`,
			"system: S\nuser: q\nassistant: [ID f{\"x\":1}]\ntool ID: {\"y\":2}\n*assistant: a"},
		"Bedrock": {`{"messages":[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"f","input":{}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"json":{"y":2}}]}}]}]}`,
			"user: q\nassistant: [t1 f{}]\n*tool t1: {\"y\":2}"},
		"LangChain": {`[{"type":"human","data":{"content":"q"}},{"type":"ai","data":{"content":"","tool_calls":[{"name":"f","args":{"x":1},"id":"c1","type":"tool_call"}]}},{"type":"tool","data":{"content":"5","tool_call_id":"c1"}}]`,
			"user: q\nassistant: [c1 f{\"x\":1}]\n*tool c1: 5"},
		"LangChain's constructors": {`[{"lc":1,"type":"constructor","id":["langchain","schema","HumanMessage"],"kwargs":{"content":"q"}},{"lc":1,"type":"constructor","id":["langchain","schema","AIMessage"],"kwargs":{"content":"a"}}]`, "user: q\n*assistant: a"},
		"flat calls": {`[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","name":"f","arguments":"{\"x\":1}"}]},{"role":"tool","tool_call_id":"c1","content":"5"}]`,
			"user: q\nassistant: [c1 f{\"x\":1}]\n*tool c1: 5"},
		"Assistants": {`{"id":"1","role":"user","content":[{"type":"text","text":{"value":"q","annotations":[]}}]}` + "\n", "*user: q"},
		"Responses": {"[\n" + `{"type":"message","role":"user","content":[{"type":"input_text","text":"q"}]},{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},
			{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"5"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]`,
			"user: q\nassistant: [c1 f{}]\ntool c1: 5\n*assistant: a"},
		"LobeChat's topic":  {`[{"id":"1","role":"user","content":"q"},{"id":"2","role":"assistant","content":"a","parentId":"1","tools":[{"id":"c1","apiName":"f","arguments":"{}"}]},{"id":"3","role":"tool","tool_call_id":"c1","content":"r","parentId":"2"}]`, "user: q\nassistant: a [c1 f{}]\n*tool c1: r"},
		"ShareGPT":          {`[{"id":"1","conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}]}]`, "user: q\n*assistant: a"},
		"the AI SDK":        {`[{"id":"1","role":"user","parts":[{"type":"text","text":"q"}]},{"id":"2","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-f","toolCallId":"c1","state":"output-available","input":{"x":1},"output":{"y":2}},{"type":"text","text":"a"}]}]`, "user: q\nassistant: [c1 f{\"x\":1}]\ntool c1: {\"y\":2}\n*assistant: a"},
		"the AI SDK's core": {`[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"f","args":{}}]},{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"f","output":{"type":"text","value":"r"}}]}]`, "user: q\nassistant: [c1 f{}]\n*tool c1: r"},
		"Continue":          {`{"title":"T","history":[{"message":{"role":"user","content":"q"},"contextItems":[]},{"message":{"role":"assistant","content":"","toolCalls":[{"id":"c1","function":{"name":"f","arguments":"{}"}}]}},{"message":{"role":"tool","toolCallId":"c1","content":"r"}}]}`, "user: q\nassistant: [c1 f{}]\n*tool c1: r"},
		"Chatbox":           {`{"chat-sessions":[{"name":"T","messages":[{"id":"m","role":"user","contentParts":[{"type":"text","text":"q"}]}]}],"settings":{"list":[{"a":1}]}}`, "*user: q"},
		"TypingMind":        {`{"data":{"chats":[{"chatTitle":"T","messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]}],"folders":[]}}`, "*user: q"},
		"big-AGI":           {`{"conversations":[{"id":"c","userTitle":"T","messages":[{"role":"user","fragments":[{"ft":"content","part":{"pt":"text","text":"q"}}]},{"role":"assistant","fragments":[{"part":{"pt":"tool_invocation","id":"c1","invocation":{"name":"f","args":"{}"}}},{"part":{"pt":"tool_response","id":"c1","response":{"result":"r"}}}]}]}]}`, "user: q\nassistant: [c1 f{}]\n*tool c1: r"},
		"AI Studio":         {`{"chunkedPrompt":{"chunks":[{"text":"q","role":"user"},{"text":"hm","role":"model","isThought":true},{"text":"ab","parts":[{"text":"a"},{"text":"b"}],"role":"model"}]}}`, "user: q\n*assistant: ab"},
		"opencode":          {`[{"info":{"id":"1","role":"user"},"parts":[{"type":"text","text":"q"}]},{"info":{"id":"2","role":"assistant","parentID":"1"},"parts":[{"type":"text","text":"a"}]},{"info":{"id":"3","role":"assistant","parentID":"1"},"parts":[{"type":"step-start"},{"type":"tool","tool":"f","callID":"c1","state":{"status":"completed","input":{},"output":"r"}}]}]`, "user: q\nassistant: a\nassistant: [c1 f{}]\n*tool c1: r"},
		"Gemini CLI":        {`{"sessionId":"s","messages":[{"type":"user","content":"q"},{"type":"gemini","content":"a","toolCalls":[{"id":"c1","name":"f","args":{},"result":[{"functionResponse":{"response":{"output":"r"}}}]}]},{"type":"info","content":"x"}]}`, "user: q\nassistant: a [c1 f{}]\n*tool c1: r"},
		"Cursor":            {`{"conversation":[{"type":1,"bubbleId":"1","text":"q"},{"type":2,"bubbleId":"2","text":"","toolFormerData":{"name":"f","toolCallId":"c1","rawArgs":"{}","result":"r"}},{"type":2,"bubbleId":"3","text":"a"}]}`, "user: q\nassistant: [c1 f{}]\ntool c1: r\n*assistant: a"},
		"Kiro":              {`{"messagesFromExecutionId":[{"role":"human","entries":[{"type":"text","text":"q"}]},{"role":"bot","entries":[{"type":"toolUse","id":"c1","name":"f","args":{}}]},{"role":"human","entries":[{"type":"toolUseResponse","id":"c1","message":"r"}]}]}`, "user: q\nassistant: [c1 f{}]\n*tool c1: r"},
		"Kiro's tools":      {`{"messagesFromExecutionId":[{"role":"bot","entries":[{"type":"toolUse","id":"c1","name":"f","args":{}}]},{"role":"tool","entries":[{"type":"toolUseResponse","id":"c1","message":"r"}]}]}`, "assistant: [c1 f{}]\n*tool c1: r"},
		"Qwen Code": {`{"uuid":"1","parentUuid":null,"type":"user","message":{"role":"user","parts":[{"text":"q"}]}}
{"uuid":"2","parentUuid":"1","type":"system","subtype":"ui_telemetry","systemPayload":{}}
{"uuid":"3","parentUuid":"2","type":"assistant","message":{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"id":"c1","name":"f","args":{}}}]}}
{"uuid":"4","parentUuid":"3","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"r"}}}]}}`, "user: q\nassistant: [c1 f{}]\n*tool c1: r"},
		"two lists":           {`{"history":[{"role":"user","content":"q"},{"role":"assistant","content":"b"}],"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`, "user: q\n  *assistant: a\n  assistant: b"},
		"preferences":         {`{"prompt":[{"role":"user","content":"q"}],"chosen":[{"role":"assistant","content":"a"}],"rejected":[{"role":"assistant","content":"b"}]}`, "user: q\n  *assistant: a\n  assistant: b"},
		"a log of requests":   {`{"request":{"messages":[{"role":"user","content":"q"}]},"response":{"choices":[{"message":{"role":"assistant","content":"a"}}]}}`, "user: q\n*assistant: a"},
		"nested replies":      {`{"tree":{"role":"user","content":"q","children":[{"role":"assistant","content":"a","children":[]},{"role":"assistant","content":"b","children":[{"role":"user","content":"c"}]}]}}`, "user: q\n  assistant: a\n  assistant: b\n  *user: c"},
		"ShareGPT's tools":    {`{"conversations":[{"from":"human","value":"q"},{"from":"function_call","value":"{\"name\":\"f\",\"arguments\":{}}"},{"from":"observation","value":"r"}]}`, "user: q\nassistant: [ID f{}]\n*tool ID: r"},
		"chunks":              {`[{"role":"user","content":"q","contentChunks":null},{"role":"assistant","content":"","contentChunks":[{"type":"text","text":"a"}]}]`, "user: q\n*assistant: a"},
		"parents":             {`[{"id":"1","parent_id":null,"role":"user","content":"q"},{"id":"2","parent_id":"1","role":"assistant","content":"a"},{"id":"3","parent_id":"1","role":"assistant","content":"b"}]`, "user: q\n  assistant: a\n  *assistant: b"},
		"children":            {`[{"id":1,"children":[2,3],"role":"user","content":"q"},{"id":2,"children":[],"role":"assistant","content":"a"},{"id":3,"children":[],"role":"assistant","content":"b"}]`, "user: q\n  assistant: a\n  *assistant: b"},
		"all below the first": {`[{"id":"1","parentId":null,"role":"user","content":"q"},{"id":"2","parentId":"1","role":"assistant","content":"a"},{"id":"3","parentId":"1","role":"user","content":"r"},{"id":"4","parentId":"1","role":"assistant","content":"b"}]`, "user: q\nassistant: a\nuser: r\n*assistant: b"},
		"no parents":          {`[{"id":"1","parent":null,"role":"user","content":"q"},{"id":"2","parent":null,"role":"assistant","content":"a"},{"id":"3","parent":null,"role":"user","content":"r"}]`, "user: q\nassistant: a\n*user: r"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, all := formattest.Read(t, strings.NewReader(test.file), "")
			if report.Format != "messages" || len(all) != 1 {
				t.Fatalf("%d conversations of format %q: %s", len(all), report.Format, formattest.Notes(report))
			}
			got := formattest.Outline(all[0])
			if strings.Contains(test.want, "ID") {
				got = callID.ReplaceAllString(got, "ID")
			}
			formattest.Same(t, "conversation", got, test.want)
			if t.Failed() {
				t.Log(formattest.Notes(report))
			}
		})
	}
}

var callID = regexp.MustCompile(`call_[0-9a-f]{24}`)
