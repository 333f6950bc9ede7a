package wire

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/internal/check"
)

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	check.Golden(t, filepath.Join("testdata", filepath.FromSlash(name)), got)
}

var (
	someNode    = NodeID{uuid.MustParse("01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa"), uuid.MustParse("01979b2e-8f2c-7d02-8a51-6f0f3e5a9b10")}
	someSummary = NodeID{someNode.Conversation, uuid.MustParse("01979b2e-8f2c-7000-8000-000000000001")}
	someTime    = time.Unix(1795334141, 0)
)

func message(t check.T, raw string) *chat.Message {
	m, err := chat.Parse([]byte(raw))
	check.NoError(t, err)
	return m
}

// answers are the answers of which the streams are golden files: pieces as a
// model gives them, and how they end.
func answers(t testing.TB) map[string]struct {
	turn   Turn
	deltas []sdk.Delta
	end    End
} {
	t.Helper()
	plain := Turn{Node: someNode, CreatedAt: someTime, Echo: NewEcho("gpt-alias")}
	tools := check.Must(ParseCreate([]byte(`{"model":"gpt-alias","input":"Weather?","tools":[
		{"type":"function","name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}},
		{"type":"namespace","name":"mcp__clock","tools":[{"type":"function","name":"now"}]},{"type":"web_search"}]}`)))(t)
	custom := check.Must(ParseCreate([]byte(`{"model":"gpt-alias","input":[{"role":"user","content":"Patch it."},{"type":"additional_tools","role":"developer","tools":[
		{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec","format":{"type":"grammar","syntax":"lark","definition":"start: /.+/"}}]}]}],
		"tools":[{"type":"tool_search","execution":"client","description":"Finds tools.","parameters":{"type":"object"}}]}`)))(t)
	own := plain
	own.Echo = custom.Echo
	calling, compacted, background := plain, plain, plain
	background.Echo.Background = true
	calling.Echo = tools.Echo
	compacted.Compaction = &Compaction{Summary: someSummary, Text: "They spoke of hazel."}
	ended := func(reason, raw string) End {
		return End{Status: Completed, At: someTime.Add(time.Second), Message: message(t, raw), FinishReason: reason, Usage: &Usage{Input: 10, Output: 4}}
	}
	failed := End{
		Status: Failed, At: someTime.Add(time.Second), Message: message(t, `{"role":"assistant","content":"Hel"}`),
		Error: NewError(502, "model_unavailable", "", "No whole answer came."),
	}
	stopped := failed
	stopped.Status = Cancelled
	call := func(pieces ...string) (d sdk.Delta) {
		for _, piece := range pieces {
			d.Calls = append(d.Calls, json.RawMessage(piece))
		}
		return d
	}
	const (
		first  = `{"index":0,"id":"call_A","type":"function","function":{"name":"weather","arguments":""}}`
		second = `{"index":1,"id":"call_B","type":"function","function":{"name":"mcp__clock__now","arguments":"{}"}}`
		whole  = `{"id":"call_A","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}`
		exec   = `{"index":0,"id":"call_A","type":"custom","custom":{"name":"functions__exec","input":"ls"}}`
		search = `{"index":1,"id":"call_B","type":"function","function":{"name":"tool_search","arguments":"{\"query\":\"mail\"}"}}`
		other  = `{"id":"call_B","type":"function","function":{"name":"mcp__clock__now","arguments":"{}"}}`
	)
	return map[string]struct {
		turn   Turn
		deltas []sdk.Delta
		end    End
	}{
		"text":         {plain, []sdk.Delta{{Text: "Hel"}, {Text: "lo <3"}}, ended("stop", `{"role":"assistant","content":"Hello <3"}`)},
		"client_tools": {own, []sdk.Delta{call(exec), call(search)}, ended("tool_calls", `{"role":"assistant","content":null,"tool_calls":[`+exec+`,`+search+`]}`)},
		"function_call": {calling, []sdk.Delta{call(first), call(`{"index":0,"function":{"arguments":"{\"city\":"}}`), call(`{"index":0,"function":{"arguments":"\"Rome\"}"}}`)},
			ended("tool_calls", `{"role":"assistant","content":null,"tool_calls":[`+whole+`]}`)},
		"two_calls": {calling, []sdk.Delta{call(first, `{"index":0,"function":{"arguments":"{\"city\":\"Rome\"}"}}`), call(second)},
			ended("tool_calls", `{"role":"assistant","content":null,"tool_calls":[`+whole+`,`+other+`]}`)},
		"text_then_call": {calling, []sdk.Delta{{Text: "Let me look."}, call(first), call(`{"index":0,"function":{"arguments":"{\"city\":\"Rome\"}"}}`)},
			ended("tool_calls", `{"role":"assistant","content":"Let me look.","tool_calls":[`+whole+`]}`)},
		"reasoning": {plain, []sdk.Delta{{Reasoning: "They greet"}, {Reasoning: " me."}, {Text: "Hello."}},
			ended("stop", `{"role":"assistant","content":"Hello.","reasoning_content":"They greet me."}`)},
		"refusal":    {plain, []sdk.Delta{{Refusal: "I would "}, {Refusal: "rather not."}}, ended("stop", `{"role":"assistant","content":null,"refusal":"I would rather not."}`)},
		"cut_off":    {plain, []sdk.Delta{{Text: "Hel"}}, ended("length", `{"role":"assistant","content":"Hel"}`)},
		"failed":     {plain, []sdk.Delta{{Text: "Hel"}}, failed},
		"cancelled":  {plain, []sdk.Delta{{Text: "Hel"}}, stopped},
		"background": {background, []sdk.Delta{{Text: "Hello."}}, ended("stop", `{"role":"assistant","content":"Hello."}`)},
		"compaction": {compacted, []sdk.Delta{{Text: "Hello."}}, ended("stop", `{"role":"assistant","content":"Hello."}`)},
	}
}

func TestErrorBody(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	for _, status := range []int{400, 401, 403, 404, 409, 413, 429, 499, 500, 503} {
		e := NewError(status, "some_code", "", "So it is.")
		fmt.Fprintf(&table, "%s %s\n", e.JSON(), e.failure())
	}
	fmt.Fprintf(&table, "%s\n%s\n", NewError(400, "prompt_too_long", "input", "Too long.").JSON(), NewError(500, "", "", "Never.").JSON())
	golden(t, "errors.txt", table.String())
}
