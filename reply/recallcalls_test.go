package reply

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// What is wrong with a call, its result says.
func TestRecallCallsThatAreWrong(t *testing.T) {
	t.Parallel()
	many := make([]llmtest.ToolCall, 10)
	for i := range many {
		many[i] = recalls(fmt.Sprintf("m%d", i), "gate")
	}
	for name, test := range map[string]struct {
		calls []llmtest.ToolCall
		want  string // in the last result
	}{
		"no JSON":         {[]llmtest.ToolCall{{ID: "a", Name: "recall", Arguments: `{"query":`}}, recallUsage},
		"nothing":         {[]llmtest.ToolCall{{ID: "a", Name: "recall", Arguments: ""}}, "not a JSON object"},
		"no query":        {[]llmtest.ToolCall{{ID: "a", Name: "recall", Arguments: `{"limit":3}`}}, "no query"},
		"a list":          {[]llmtest.ToolCall{{ID: "a", Name: "recall", Arguments: `["gate"]`}}, recallUsage},
		"no text":         {[]llmtest.ToolCall{{ID: "a", Name: "recall", Arguments: `{"query":7}`}}, recallUsage},
		"no words":        {[]llmtest.ToolCall{recalls("a", "…")}, "Say in words"},
		"a limit of 0":    {[]llmtest.ToolCall{{ID: "a", Name: "recall", Arguments: `{"query":"gate","limit":0}`}}, "1 to 20"},
		"too large":       {[]llmtest.ToolCall{recalls("a", strings.Repeat("gate ", 20_000))}, "fewer words"},
		"nothing found":   {[]llmtest.ToolCall{recalls("a", "zeppelin")}, "Nothing was found"},
		"one of two":      {[]llmtest.ToolCall{{ID: "a", Name: "recall", Arguments: `{}`}, recalls("b", "orchard gate")}, "wombat-42"},
		"too many calls":  {many, "at once are the most"},
		"further members": {[]llmtest.ToolCall{{ID: "a", Name: "recall", Arguments: `{"query":"orchard gate","limit":1.0,"why":"so"}`}}, "wombat-42"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := scripting(llmtest.ResponseCalling(test.calls...), llmtest.Response("Well."))
			f := serve(t, nil, m)
			id, head := f.folded(t, withRecall)
			e := end(t, f.ask(t, Request{ConversationID: id, HeadID: head}))
			if e.Status != StatusCompleted || e.Recalled != 1+len(test.calls) {
				t.Fatalf("%+v", e)
			}
			asked := m.Requests()[1].Messages
			checkCalls(t, asked)
			if got := chat.Read(asked[len(asked)-1]).Text(); !strings.Contains(got, test.want) {
				t.Errorf("the result is %s", got)
			}
		})
	}
	t.Run("nothing is folded", func(t *testing.T) {
		t.Parallel()
		m := scripting(llmtest.ResponseCalling(recalls("a", "coppice")), llmtest.Response("Well."))
		f := serve(t, nil, m)
		id, head := f.conversation(t)
		yes := true
		e := end(t, f.ask(t, Request{ConversationID: id, HeadID: head, Recall: &yes}))
		asked := m.Requests()[1].Messages
		if got := chat.Read(asked[len(asked)-1]).Text(); e.Status != StatusCompleted || !strings.Contains(got, "No earlier message is hidden") {
			t.Errorf("%+v, %s", e, got)
		}
	})
}
