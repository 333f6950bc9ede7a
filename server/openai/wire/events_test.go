package wire

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/internal/check"
)

func live(turn Turn, deltas []sdk.Delta, end End, after int) string {
	s := NewStream(turn, after)
	out := s.Begin(nil)
	for _, d := range deltas {
		out = s.Add(out, d)
	}
	return string(s.End(out, end))
}

func chunks(turn Turn, deltas []sdk.Delta, end End, usage bool) string {
	c := NewChunks(turn, usage)
	out := c.Begin(nil)
	for _, d := range deltas {
		out = c.Add(out, d)
	}
	return string(c.End(out, end))
}

func TestGoldenStreams(t *testing.T) {
	t.Parallel()
	for name, a := range answers(t) {
		golden(t, "responses/"+name+".sse", live(a.turn, a.deltas, a.end, -1))
		golden(t, "responses/"+name+".json", string(chat.MustMarshal(a.turn.Ended(a.end)))+"\n")
		golden(t, "chunks/"+name+".sse", chunks(a.turn, a.deltas, a.end, name != "refusal"))
		if a.end.Status != Failed {
			golden(t, "chunks/"+name+".json", string(chat.MustMarshal(a.turn.Completion(a.end)))+"\n")
		}
	}
}

// A sent is an event as a client reads it.
type sent struct {
	Type     string
	Seq      int `json:"sequence_number"`
	Response *struct {
		ID, Status string
		Output     []map[string]any
		raw        string
	}
	Item   map[string]any
	ItemID string `json:"item_id"`
	Output *int   `json:"output_index"`
	Delta  string
	Text   string
	Input  string
}

func types(events []sent) string {
	var all []string
	for _, e := range events {
		all = append(all, e.Type)
	}
	return strings.Join(all, " ")
}

// read reads a stream, whose numbers have no holes.
func read(t check.T, stream string) (all []sent) {
	for text := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		name, data, named := strings.Cut(text, "\ndata: ")
		if !named {
			check.Need(t, text == "data: [DONE]", "neither an event nor the end: %q", text)
			continue
		}
		var e sent
		check.JSON(t, data, &e)
		check.Need(t, "event: "+e.Type == name, "%s", text)
		check.Need(t, len(all) == 0 || e.Seq == all[len(all)-1].Seq+1, "event %d comes after %+v", e.Seq, all)
		if e.Response != nil {
			e.Response.raw = data[strings.Index(data, `"response":`):]
		}
		all = append(all, e)
	}
	return all
}

// events reads a whole stream as strictly as clients do: items begin one behind
// the other, their ids stay the same, each is done once.
func events(t check.T, stream string) []sent {
	all := read(t, stream)
	var open []string
	finished := map[string]bool{}
	for _, e := range all {
		switch id := fmt.Sprint(e.Item["id"]); {
		case e.Type == "response.output_item.added":
			check.Need(t, *e.Output == len(open) && !slices.Contains(open, id), "item %s at %d, where %v are", id, *e.Output, open)
			open = append(open, id)
		case e.Type == "response.output_item.done":
			check.Need(t, open[*e.Output] == id && !finished[id], "item %s is done at %d, where %v are", id, *e.Output, open)
			finished[id] = true
		case e.ItemID != "" && (open[*e.Output] != e.ItemID || finished[e.ItemID]):
			t.Fatalf("%s is about item %s at %d, where %v are", e.Type, e.ItemID, *e.Output, open)
		}
	}
	last := all[len(all)-1]
	check.Need(t, last.Response == nil || last.Seq <= 2 || len(finished) == len(open), "of the items %v these are done: %v", open, finished)
	return all
}

// anAnswer draws an answer, the pieces that a model cuts it into, and its end.
func anAnswer(t *rapid.T) (deltas []sdk.Delta, end End) {
	words := rapid.StringOfN(rapid.SampledFrom([]rune("ab \"\\\n<é🌳")), 1, 12, -1)
	var reasoning, text, refusal string
	if rapid.Bool().Draw(t, "reasons") {
		reasoning = words.Draw(t, "reasoning")
	}
	if rapid.Bool().Draw(t, "speaks") {
		text = "x" + words.Draw(t, "text")
	}
	if rapid.IntRange(0, 5).Draw(t, "refuses") == 0 {
		refusal = words.Draw(t, "refusal")
	}
	cut := func(all string, each func(string)) {
		for runes := []rune(all); len(runes) > 0; {
			n := rapid.IntRange(1, len(runes)).Draw(t, "piece")
			each(string(runes[:n]))
			runes = runes[n:]
		}
	}
	cut(reasoning, func(s string) { deltas = append(deltas, sdk.Delta{Reasoning: s}) })
	cut(text, func(s string) { deltas = append(deltas, sdk.Delta{Text: s}) })
	cut(refusal, func(s string) { deltas = append(deltas, sdk.Delta{Refusal: s}) })
	w := &chat.Message{Role: chat.Assistant, Refusal: &refusal}
	if text != "" {
		w.Parts = []chat.Part{chat.TextPart(text)}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
		kind, with := toolFunction, "arguments"
		call := chat.Call{ID: fmt.Sprint("call_", i), Name: fmt.Sprint("f", i), Arguments: words.Draw(t, "arguments"), Custom: rapid.Bool().Draw(t, "custom")}
		if call.Custom {
			kind, with = toolCustom, "input"
		}
		w.Calls = append(w.Calls, call)
		begins := map[string]any{"index": i, "id": call.ID, "type": kind}
		if rapid.Bool().Draw(t, "the name late") {
			deltas, begins = append(deltas, sdk.Delta{Calls: []json.RawMessage{chat.MustMarshal(begins)}}), map[string]any{"index": i}
		}
		begins[kind] = map[string]string{"name": fmt.Sprint("f", i)}
		deltas = append(deltas, sdk.Delta{Calls: []json.RawMessage{chat.MustMarshal(begins)}})
		cut(call.Arguments, func(s string) {
			deltas = append(deltas, sdk.Delta{Calls: []json.RawMessage{chat.MustMarshal(map[string]any{"index": i, kind: map[string]string{with: s}})}})
		})
	}
	end = End{Status: rapid.SampledFrom([]Status{Completed, Completed, Failed, Cancelled}).Draw(t, "status"), At: someTime, Usage: &Usage{Input: 3, Output: 4, Reasoning: 1}}
	end.FinishReason = rapid.SampledFrom([]string{"stop", "length", "content_filter", "tool_calls"}).Draw(t, "reason")
	if text+refusal != "" || len(w.Calls) > 0 {
		end.Message = chat.Read(w.Encode())
		end.Message.Reasoning = reasoning
	}
	return deltas, end
}

// TestReplayIsTheSame holds that a stream that is written again from the stored message has the
// items and the final response of the one that ran, and of a later reading.
func TestReplayIsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		deltas, end := anAnswer(t)
		turn := Turn{Node: someNode, CreatedAt: someTime, Echo: NewEcho("m")}
		if rapid.Bool().Draw(t, "compacted") {
			turn.Compaction = &Compaction{Summary: someSummary}
		}
		ran, again := events(t, live(turn, deltas, end, -1)), events(t, live(turn, nil, end, -1))
		last, lastAgain := ran[len(ran)-1].Response, again[len(again)-1].Response
		check.Equal(t, "the final response again", lastAgain.raw, last.raw)
		check.Has(t, "the final response", last.raw, string(chat.MustMarshal(turn.Ended(end))))
		if end.Message == nil {
			return // of what was not stored, nothing is there later
		}
		check.Equal(t, "the items again", string(chat.MustMarshal(doneItems(again))), string(chat.MustMarshal(doneItems(ran))))
		check.Equal(t, "the items in the response", string(chat.MustMarshal(last.Output)), string(chat.MustMarshal(doneItems(ran))))
		texts := map[string]string{}
		for _, e := range ran {
			if strings.HasSuffix(e.Type, "_text.delta") || strings.HasSuffix(e.Type, "_input.delta") {
				texts[e.ItemID] += e.Delta
			}
			if strings.HasSuffix(e.Type, "_text.done") && texts[e.ItemID] != e.Text || strings.HasSuffix(e.Type, "_input.done") && texts[e.ItemID] != e.Input {
				t.Fatalf("the pieces are %q, the text %q", texts[e.ItemID], e.Text)
			}
		}
	})
}

func doneItems(all []sent) (items []map[string]any) {
	items = []map[string]any{}
	for _, e := range all {
		if e.Type == "response.output_item.done" {
			for len(items) <= *e.Output {
				items = append(items, nil)
			}
			items[*e.Output] = e.Item
		}
	}
	return items
}

// A client gets the events after the one that it has, and the end in any case.
func TestResumed(t *testing.T) {
	t.Parallel()
	a := answers(t)["text"]
	whole := events(t, live(a.turn, a.deltas, a.end, -1))
	for after := range len(whole) + 5 {
		got := read(t, live(a.turn, a.deltas, a.end, after))
		want := whole[min(after+1, len(whole)-1):]
		check.Equal(t, fmt.Sprint("after ", after), types(got), types(want))
		check.Equal(t, "the first one", got[0].Seq, after+1)
	}
}

// TestLate holds that what comes out of order is in the final response alone.
func TestLate(t *testing.T) {
	t.Parallel()
	call := json.RawMessage(`{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`)
	end := End{Status: Completed, At: someTime, Message: message(t, `{"role":"assistant","content":"ab","reasoning_content":"xy","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`)}
	turn := Turn{Node: someNode, CreatedAt: someTime, Echo: NewEcho("m")}
	all := events(t, live(turn, []sdk.Delta{{Reasoning: "x"}, {Text: "a"}, {Reasoning: "y"}, {Calls: []json.RawMessage{call}}, {Text: "b"}}, end, -1))
	items := string(chat.MustMarshal(doneItems(all)))
	last := all[len(all)-1].Response
	check.Has(t, "items", items, `"text":"x"`, `"text":"a"`)
	check.Has(t, "items", last.raw, `"text":"ab"`, `"text":"xy"`)
}

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
