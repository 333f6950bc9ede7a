package reply

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// Where events end is read as it was written, up to the first piece of a call; of
// bytes that nobody wrote, nothing is read that would not hold together.
func TestMarks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var marks []mark
		var m mark
		calls := rapid.IntRange(0, 60).Draw(t, "calls")
		for i := range rapid.IntRange(0, 50).Draw(t, "marks") {
			last := m
			m.reasoning += rapid.Int32Range(0, 300).Draw(t, "reasoning")
			m.content += rapid.Int32Range(0, 300).Draw(t, "content")
			m.refusal += rapid.Int32Range(0, 300).Draw(t, "refusal")
			if m == last { // nothing is said in the event of a step
				m.steps++
			}
			if i >= calls {
				m.calls++
			}
			marks = append(marks, m)
		}
		want := marks[:min(calls, len(marks))]
		if got := decodeMarks(encodeMarks(marks)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v, want %v", got, want)
		}
		var last mark
		for _, m := range decodeMarks(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) {
			if m.reasoning < last.reasoning || m.content < last.content || m.refusal < last.refusal {
				t.Fatalf("%v after %v", m, last)
			}
			last = m
		}
	})
}

// An event in which no text grows is a step, wherever it stands.
func TestMarksOfSteps(t *testing.T) {
	t.Parallel()
	marks := []mark{{steps: 1}, {content: 5, steps: 1}, {content: 5, steps: 2}, {content: 7, reasoning: 3, steps: 2}}
	if got := decodeMarks(encodeMarks(marks)); !slices.Equal(got, marks) {
		t.Errorf("%+v, want %+v", got, marks)
	}
}

// What the first event says is saved whole but for the messages, which are on the
// branch.
func TestStartedIsSaved(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, newGate())
	id, head := f.conversation(t)
	m, err := f.store.Message(t.Context(), id, head)
	if err != nil {
		t.Fatal(err)
	}
	summary := uuid.New()
	started := &Started{
		MessageID: uuid.New(), ParentID: head, Messages: []tree.Message{m}, Model: "m",
		Context:   summarize.Context{ConversationID: id, HeadID: head, Usage: summarize.Usage{ContextTokens: 7}, Omitted: 3, Counts: summarize.Counts{Tail: 1}},
		Compacted: &Compacted{SummaryID: summary, Message: json.RawMessage(`{"role":"user","content":"Before: …"}`)},
	}
	got, err := f.decodeStarted(t.Context(), tree.Checkpoint{
		ConversationID: id, MessageID: started.MessageID, ParentID: head, Model: "m", Started: encodeStarted(started),
	})
	if err != nil || fmt.Sprintf("%+v", *got.Compacted) != fmt.Sprintf("%+v", *started.Compacted) || got.Messages[0].ID != head ||
		fmt.Sprintf("%+v", got.Context) != fmt.Sprintf("%+v", started.Context) {
		t.Errorf("%+v, %v", got, err)
	}
	if encodeStarted(nil) != nil {
		t.Error("a reply that hasn't started has a note")
	}
}
