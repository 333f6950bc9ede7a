package reply

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// An Event is one event of a reply. Its ID is over 0 and grows from event to
// event. Exactly one of the other fields is set.
type Event struct {
	ID      int
	Started *Started // the first, unless the reply ended before the model was called
	Delta   *Delta
	Message *tree.Message // a call of recall, or its result, which was stored before the answer
	End     *End          // the last
}

// Started says which context the model was given.
type Started struct {
	MessageID uuid.UUID         // that the answer will have
	ParentID  uuid.UUID         // the head that is answered
	Messages  []tree.Message    // that the request brought; the last one is the head
	Model     string            // as configured
	Context   summarize.Context // the context that the model reads, without the messages
	Compacted *Compacted        // nil where the request asked for no compaction, or none came of it
}

// Compacted has the summary that was made because the request asked for a
// compaction.
type Compacted struct {
	SummaryID uuid.UUID       // its node; of a relay the id of none
	Message   json.RawMessage // by which the model read it; nil where only the stored answer is left
}

// A Delta is a piece of the reasoning or of the answer. Pieces that nobody has
// read yet are put together, so the size of a piece means nothing. All pieces
// together are the reasoning, and the answer.
type Delta struct {
	Reasoning        string // with nothing beside it
	Content, Refusal string
	ToolCalls        []json.RawMessage // chat-completions pieces of calls, with their index
}

// A Status says how a reply ended.
type Status string

const (
	StatusCompleted Status = "completed"
	StatusStopped   Status = "stopped" // by a caller, or by the end of the program
	StatusFailed    Status = "failed"
)

// An End says how a reply ended.
type End struct {
	HeadID       uuid.UUID // that was answered; uuid.Nil if it isn't known
	Recalled     int       // calls of recall and results that are stored between the head and the answer
	Status       Status
	Message      *tree.Message // the stored answer; nil if nothing is stored
	Usage        Usage
	FinishReason string // the provider's word; "" for none
	Err          error  // why it failed: a *fault.Error with a code, or an error for the log
	Compacted    *Compacted
}

// Usage is in tokens, as the provider counted them. A count is 0 if the
// provider gave none.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	CachedTokens     int `json:"cached_tokens,omitempty"`    // of the prompt's, those that the provider's cache had
	ReasoningTokens  int `json:"reasoning_tokens,omitempty"` // of the completion's, hidden reasoning
}

// ErrEnded is the error of Next after the last event.
var ErrEnded = errors.New("the reply has ended")

// LastEventID is the id of the End of a reply of which only the stored answer
// is left, and of one that another server runs. No event has a larger id.
const LastEventID = math.MaxInt32

// Limits of what a reply keeps in memory.
const (
	maxAnswerBytes = tree.MaxBodyBytes - 4<<10 // text as JSON, the rest being the message around it
	maxCallBytes   = 16 << 20                  // pieces of tool calls, which are small and many
	maxReasoning   = tree.MaxReasoning         // bytes of text, the last being reasoningCut where there is more

	reasoningCut = "…"

	// Beyond so many events, pieces are put together up to so many bytes: a
	// model that sends single letters makes no endless list.
	manyEvents  = 16 << 10
	sparseBytes = 64
)

// events is a reply's log. Text lies in one piece, with marks where the events
// end; the text after the last mark belongs to an event that nobody has read,
// and grows until somebody does.
type events struct {
	mu      sync.Mutex
	changed chan struct{} // closed with every change, and replaced

	started          *Started
	reasoning        []byte
	content, refusal []byte
	calls            []json.RawMessage
	steps            []tree.Message // that were stored before the answer
	thinking, said   time.Time      // when the first piece of the reasoning came, and of the answer
	thoughtCut       bool
	from             mark // where the answer of the last call of the model begins
	marks            []mark
	end              *End
	broken           error // why there will be no events at all

	textBytes, callBytes int
	only                 bool // there is nothing but the end
	copied               bool // the marks or the end are another server's, of the text that was saved
}

// A mark is where an event ends.
type mark struct{ reasoning, content, refusal, calls, steps int32 }

func newEvents() events { return events{changed: make(chan struct{})} }

// change changes the log under its lock and tells the readers.
func (l *events) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

// add takes a piece of the answer from the model.
func (l *events) add(d llm.Delta) (err error) {
	var calls []json.RawMessage
	if d.ToolCalls != nil {
		if err := json.Unmarshal(d.ToolCalls, &calls); err != nil {
			return err // package llm has read it as an array before
		}
	}
	l.change(func() {
		l.part(&d)
		l.textBytes += jsonBytes(d.Content) + jsonBytes(d.Refusal)
		l.callBytes += len(d.ToolCalls)
		if l.textBytes > maxAnswerBytes || l.callBytes > maxCallBytes {
			err = errAnswerTooLong
			return
		}
		l.think(d.Reasoning)
		if l.said.IsZero() && (d.Content != "" || d.Refusal != "" || calls != nil) {
			l.said = time.Now()
		}
		l.content = append(l.content, d.Content...)
		l.refusal = append(l.refusal, d.Refusal...)
		l.calls = append(l.calls, calls...)
	})
	return err
}

// think takes a piece of the reasoning. What is over the limit is left out: the
// answer is worth more than all of what came before it.
func (l *events) think(text string) {
	if text == "" || l.thoughtCut {
		return
	}
	if l.thinking.IsZero() {
		l.thinking = time.Now()
	}
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD") // nothing else is refused, and the answer with it
	if room := maxReasoning - len(reasoningCut) - len(l.reasoning); len(text) > room {
		for !utf8.RuneStart(text[room]) {
			room--
		}
		text, l.thoughtCut = text[:room]+reasoningCut, true
	}
	l.reasoning = append(l.reasoning, text...)
}

// thought is all of the reasoning that readers may have seen, and how long it took;
// 0 where that isn't known.
func (l *events) thought() (reasoning string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.thinking.IsZero() && !l.said.IsZero() {
		took = max(l.said.Sub(l.thinking), 0)
	}
	return string(l.reasoning), took
}

// jsonBytes is what a text takes in a JSON string, at most.
func jsonBytes(s string) (n int) {
	for _, r := range s {
		switch {
		case strings.ContainsRune("\"\\\n\r\t\b\f", r):
			n += 2
		case r < ' ' || r == '\u2028' || r == '\u2029':
			n += 6
		case r < 0x80:
			n++
		case r < 0x800:
			n += 2
		case r < 0x10000:
			n += 3
		default:
			n += 4
		}
	}
	return n
}

// text is all of the answer's text that readers may have seen.
func (l *events) text() (content, refusal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.content), string(l.refusal)
}

// size is what the log keeps in memory, about.
func (l *events) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := cap(l.reasoning) + cap(l.content) + cap(l.refusal) + l.callBytes + 16*cap(l.marks)
	for _, m := range l.steps {
		n += len(m.Body) + len(m.Metadata)
	}
	if l.end != nil && l.end.Message != nil {
		n += len(l.end.Message.Body) + len(l.end.Message.Reasoning)
	}
	return n + 1<<10
}

// Next returns the events after the event with the id after, or all events
// where after is 0. It waits until there is at least one, or until ctx is done.
// After the End it returns ErrEnded.
func (l *events) Next(ctx context.Context, after int) ([]Event, error) {
	for {
		l.mu.Lock()
		found, ended, changed := l.after(after), l.end != nil, l.changed
		broken := l.broken
		l.mu.Unlock()
		switch {
		case broken != nil:
			return nil, broken
		case len(found) > 0:
			return found, nil
		case ended:
			return nil, ErrEnded
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *events) after(id int) (found []Event) {
	if l.only {
		if l.end != nil && id < LastEventID {
			found = append(found, Event{ID: LastEventID, End: l.end})
		}
		return found
	}
	if id < 1 && l.started != nil {
		found = append(found, Event{ID: 1, Started: l.started})
	}
	l.freeze()
	for i := max(id-1, 0); i < len(l.marks); i++ {
		var from mark
		if i > 0 {
			from = l.marks[i-1]
		}
		to := l.marks[i]
		if to.steps > from.steps {
			found = append(found, Event{ID: i + 2, Message: &l.steps[from.steps]})
			continue
		}
		found = append(found, Event{ID: i + 2, Delta: &Delta{
			Reasoning: string(l.reasoning[from.reasoning:to.reasoning]),
			Content:   string(l.content[from.content:to.content]), Refusal: string(l.refusal[from.refusal:to.refusal]),
			ToolCalls: l.calls[from.calls:to.calls:to.calls],
		}})
	}
	last := len(l.marks) + 2
	switch {
	case l.copied: // readers may have events of the other server's that weren't saved
		last = LastEventID
	case l.started == nil: // it failed before
		last = 1
	}
	if l.end != nil && id < last {
		found = append(found, Event{ID: last, End: l.end})
	}
	return found
}

// freeze makes an event of the text after the last mark, because somebody reads
// it: of reasoning and answer one each.
func (l *events) freeze() {
	var last mark
	if n := len(l.marks); n > 0 {
		last = l.marks[n-1]
	}
	now := mark{int32(len(l.reasoning)), int32(len(l.content)), int32(len(l.refusal)), int32(len(l.calls)), last.steps}
	few := int(now.reasoning-last.reasoning)+int(now.content-last.content)+int(now.refusal-last.refusal) < sparseBytes && now.calls == last.calls
	if few && len(l.marks) >= manyEvents && l.end == nil {
		return
	}
	if now.reasoning > last.reasoning {
		last.reasoning = now.reasoning
		l.marks = append(l.marks, last)
	}
	if now != last {
		l.marks = append(l.marks, now)
	}
}
