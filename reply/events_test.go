package reply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
)

// Every reader gets the text once and whole, and the same events, wherever it leaves and comes back.
func TestReadersLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.StringN(1, 20, -1), 0, 60).Draw(t, "pieces")
		leaves := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 3), 0, 30), 1, 4).Draw(t, "readers")
		l := newEvents()
		var seen sync.Map // id → what the event says
		failures := make(chan error, len(leaves))
		var readers sync.WaitGroup
		for _, leave := range leaves {
			readers.Go(func() { failures <- readTo(l, leave, strings.Join(pieces, ""), &seen) })
		}
		l.start(&Started{Model: "m"})
		for i, p := range pieces {
			d := llm.Delta{Content: p}
			switch i % 5 {
			case 2:
				if !strings.Contains(p, "\x00") { // which is dropped of reasoning
					d = llm.Delta{Reasoning: p}
				}
			case 3:
				d = llm.Delta{Refusal: p}
			case 4:
				raw, _ := json.Marshal([]string{p})
				d = llm.Delta{ToolCalls: raw}
			}
			check.NoError(t, l.add(d))
		}
		l.finish(&End{Status: StatusCompleted}, true)
		readers.Wait()
		for range leaves {
			if err := <-failures; err != nil {
				t.Fatal(err)
			}
		}
	})
}

// readTo reads to the end, and leaves amid what a call gave after as many events as leave says.
func readTo(l *events, leave []int, want string, seen *sync.Map) error {
	h := &heard{}
	for i := 0; ; i++ {
		events, err := l.next(context.Background(), h.last)
		if errors.Is(err, ErrEnded) {
			break
		}
		if err != nil {
			return err
		}
		if i < len(leave) && leave[i] < len(events) {
			events = events[:leave[i]]
		}
		for _, e := range events {
			says := fmt.Sprintf("%v %v %v", e.Started, e.Delta, e.End)
			if before, there := seen.LoadOrStore(e.ID, says); there && before != says {
				return fmt.Errorf("event %d says %s to one reader and %s to another", e.ID, before, says)
			}
		}
		if err := h.take(events); err != nil {
			return err
		}
	}
	var calls strings.Builder
	for _, raw := range h.calls {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		calls.WriteString(s)
	}
	if h.started == nil || h.end == nil {
		return errors.New("the start or the end is missing")
	}
	if got := h.reasoning.Len() + h.content.Len() + h.refusal.Len() + calls.Len(); got != len(want) {
		return fmt.Errorf("a reader got %d bytes of %d", got, len(want))
	}
	if h.content.String() != string(l.content) || h.refusal.String() != string(l.refusal) {
		return fmt.Errorf("a reader got %q, want %q", h.content.String(), l.content)
	}
	return nil
}

// The memory of a reply is bounded, whatever a model sends.
func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	l := newEvents()
	l.start(&Started{})
	last := 0
	read := func() (got int) {
		for _, e := range l.after(last) {
			last = e.ID
			if e.Delta != nil {
				got += len(e.Delta.Content)
			}
		}
		return got
	}
	sent, got := 0, 0
	for piece := "x"; ; sent += len(piece) {
		if len(l.list) > manyEvents+100 {
			piece = strings.Repeat("x", 16)
		}
		if err := l.add(llm.Delta{Content: piece}); err != nil {
			wantError(t, err, fault.Model, "answer_too_long")
			break
		}
		got += read() // a reader that keeps up
	}
	l.finish(&End{}, true)
	got += read()
	check.That(t, got == sent && sent <= maxAnswerBytes && sent >= maxAnswerBytes-16,
		"%d bytes sent, %d read, %d are the most", sent, got, maxAnswerBytes)
	most := manyEvents + maxAnswerBytes/sparseBytes + 1
	check.That(t, len(l.list) <= most, "%d events for %d bytes, %d are the most", len(l.list), sent, most)
	calls := json.RawMessage(`[{"index":0,"function":{"arguments":"` + strings.Repeat("x", 1000) + `"}}]`)
	for range maxCallBytes / 1000 {
		if err := l.add(llm.Delta{ToolCalls: calls}); err != nil {
			wantError(t, err, fault.Model, "answer_too_long")
			return
		}
	}
	t.Error("tool calls have no end")
}
