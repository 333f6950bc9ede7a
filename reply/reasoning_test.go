package reply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// thinker is a model that thinks before it answers.
func thinker(name string, deltas ...llm.Delta) llm.Model {
	return scripted{name, func(_ llm.Request, each func(llm.Delta) error) (llm.Response, error) {
		var text strings.Builder
		for _, d := range deltas {
			text.WriteString(d.Content)
			if err := each(d); err != nil {
				return llm.Response{}, err
			}
		}
		res := llmtest.Response(text.String())
		res.ReasoningTokens, res.CompletionTokens = 7, 9
		return res, nil
	}}
}

// A scripted model streams what its function says.
type scripted struct {
	name string
	do   func(llm.Request, func(llm.Delta) error) (llm.Response, error)
}

func (s scripted) Name() string { return s.name }

func (s scripted) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	return s.do(req, func(llm.Delta) error { return nil })
}

func (s scripted) Stream(_ context.Context, req llm.Request, each func(llm.Delta) error) (llm.Response, error) {
	return s.do(req, each)
}

// Reasoning over the limit, or with what the store refuses, never costs the answer.
func TestReasoningNeverCostsTheAnswer(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	for name, pieces := range map[string][]string{
		"too long":         slices.Repeat([]string{strings.Repeat("ä", 10_001)}, 40),
		"too long at once": {strings.Repeat("ä", tree.MaxReasoning)},
		"unsound":          {"a\x00b\xff"},
	} {
		var deltas []llm.Delta
		for _, p := range pieces {
			deltas = append(deltas, llm.Delta{Reasoning: p})
		}
		f := serveOn(t, pool, nil, thinker("m", append(deltas, llm.Delta{Content: "Hello."})...))
		id, head := f.conversation(t)
		h := hear(t, f.ask(t, Request{ConversationID: id, HeadID: head}))
		check.Need(t, h.end.Status == StatusCompleted && textOf(t, h.end.Message) == "Hello." && h.end.Usage.ReasoningTokens == 7 &&
			h.reasoning.String() == h.end.Message.Reasoning && !strings.Contains(string(h.end.Message.Body), "reasoning"),
			"%s: %+v", name, h.end)
		if name == "unsound" {
			check.That(t, h.end.Message.Reasoning == "ab\uFFFD", "%s: %q", name, h.end.Message.Reasoning)
		} else if got := h.end.Message.Reasoning; len(got) < tree.MaxReasoning-4 || len(got) > tree.MaxReasoning || !strings.HasSuffix(got, "ä…") {
			t.Errorf("%s: %d bytes, which end in %q", name, len(got), got[len(got)-6:])
		}
	}
}

// A killed server's reasoning is stored with its answer's text. Alone it is no answer.
func TestReasoningIsSavedWhileItStreams(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"", "Hel"} {
		pieces, gate := make(chan llm.Delta), make(chan struct{})
		f := serve(t, byHand("a"), scripted{"m", func(_ llm.Request, each func(llm.Delta) error) (llm.Response, error) {
			for d := range pieces {
				if err := each(d); err != nil {
					return llm.Response{}, err
				}
			}
			<-gate
			return llmtest.Response("Hello."), nil
		}})
		id, head := f.conversation(t)
		r := f.ask(t, Request{ConversationID: id, HeadID: head})
		pieces <- llm.Delta{Reasoning: "They greet."}
		check.Eventually(t, "the reasoning", func() bool { text, _ := r.thought(); return text != "" })
		if f.save(r); len(f.rows(t)) != 1 {
			t.Error("there is no sign of life")
		}
		if said != "" {
			pieces <- llm.Delta{Content: said}
			check.Eventually(t, "the text", func() bool { text, _ := r.text(); return text != "" })
			f.save(r)
		}
		b := serveOn(t, f.pool, byHand("a"), newGate()) // the same server, after a kill
		b.sweep(t, watch{}, time.Now())
		m, err := f.store.Message(t.Context(), id, r.MessageID())
		switch {
		case said == "" && (f.messages(t) != 1 || len(f.rows(t)) != 0):
			t.Errorf("%d messages: reasoning alone was stored", f.messages(t))
		case said != "" && (err != nil || m.Reasoning != "They greet." || textOf(t, &m) != said):
			t.Errorf("%+v, %v", m, err)
		}
		close(pieces)
		close(gate)
		end(t, r)
	}
}

const callBody = `{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}]}`

// A model that wants its reasoning back gets it with its own calls alone; other models get none.
func TestReasoningGoesBackWithCalls(t *testing.T) {
	t.Parallel()
	asked := make(chan llm.Request, 10)
	ask := func(name string) llm.Model {
		return scripted{name, func(req llm.Request, each func(llm.Delta) error) (llm.Response, error) {
			asked <- req
			return llmtest.Response("Yes."), each(llm.Delta{Content: "Yes."})
		}}
	}
	f := serve(t, nil, ask("gpt-4o"), ask("kimi-k2-thinking"))
	id, head := f.conversation(t)
	add := func(body, reasoning string) {
		t.Helper()
		m := check.Must(f.store.Append(t.Context(), id, head, tree.NewMessage{Message: chat.Read([]byte(body)), Reasoning: reasoning}))(t)
		head = m.ID
	}
	result := func(call string) string { return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"1"}`, call) }
	add(fmt.Sprintf(callBody, "a"), `First <"zebra">.`)
	add(result("a"), "")
	add(`{"role":"assistant","content":"One."}`, "A plain zebra.")
	add(`{"role":"user","content":"And two?"}`, "")
	add(fmt.Sprintf(callBody, "b"), "")
	add(result("b"), "")
	add(`{"role":"assistant","content":"","reasoning_content":"kept","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`, "Third zebra.")
	add(result("c"), "")
	read := func(model string) (out []string) {
		t.Helper()
		e := end(t, f.ask(t, Request{ConversationID: id, HeadID: head, Model: model, KeepHead: true}))
		check.Need(t, e.Status == StatusCompleted, "%+v", e)
		for _, m := range (<-asked).Messages {
			var body struct {
				Reasoning *string `json:"reasoning_content"`
			}
			if err := json.Unmarshal(m, &body); err != nil {
				t.Fatalf("%s: %v", m, err)
			}
			if body.Reasoning == nil {
				out = append(out, "-")
			} else {
				out = append(out, *body.Reasoning)
			}
		}
		return out
	}
	if got, want := read("kimi-k2-thinking"), []string{"-", `First <"zebra">.`, "-", "-", "-", "", "-", "kept", "-"}; !slices.Equal(got, want) {
		t.Errorf("the model that wants it reads %q, want %q", got, want)
	}
	if got, want := read("gpt-4o"), []string{"-", "-", "-", "-", "-", "-", "-", "kept", "-"}; !slices.Equal(got, want) {
		t.Errorf("another model reads %q, want %q", got, want)
	}
}

// What doesn't fit stays out, the oldest first, and the context says its true size.
func TestReasoningStaysInTheWindow(t *testing.T) {
	t.Parallel()
	asked := make(chan llm.Request, 1)
	f := serve(t, nil, scripted{"deepseek-v4", func(req llm.Request, each func(llm.Delta) error) (llm.Response, error) {
		asked <- req
		return llmtest.Response("Yes."), each(llm.Delta{Content: "Yes."})
	}})
	id, head := f.conversation(t)
	check.Must(f.store.UpdateConversation(t.Context(), id, tree.ConversationUpdate{Settings: json.RawMessage(`{"max_context_tokens":2000,"reserved_tokens":500}`)}))(t)
	for i := range 4 {
		call := fmt.Sprint("c", i)
		for _, m := range []tree.NewMessage{
			{Message: chat.Read(fmt.Appendf(nil, callBody, call)), Reasoning: strings.Repeat("word ", 450)},
			{Message: chat.Read(fmt.Appendf(nil, `{"role":"tool","tool_call_id":%q,"content":"1"}`, call))},
		} {
			stored := check.Must(f.store.Append(t.Context(), id, head, m))(t)
			head = stored.ID
		}
	}
	h := hear(t, f.ask(t, Request{ConversationID: id, HeadID: head}))
	var lengths []int
	for i, m := range (<-asked).Messages {
		if i%2 == 1 {
			var body struct {
				Reasoning string `json:"reasoning_content"`
			}
			_ = json.Unmarshal(m, &body)
			lengths = append(lengths, len(body.Reasoning))
		}
	}
	check.That(t, slices.Equal(lengths, []int{0, 2250, 2250, 2250}), "the lengths are %d", lengths)
	u := h.started.Context.Usage
	check.That(t, u.ContextTokens >= 1350 && u.ContextTokens <= u.AvailableTokens, "%+v", u)
}
