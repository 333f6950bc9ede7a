package reply

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
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
	SummaryID uuid.UUID       `json:"summary_id"`        // its node; of a relay the id of none
	Message   json.RawMessage `json:"message,omitempty"` // by which the model read it; nil where only the stored answer is left
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

// LastEventID is the id of the End of a reply of which only the stored answer is
// left, and of one that another server took. No event has a larger id.
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

// events is the log of a reply that this server runs. What came since the last event
// belongs to an event that nobody has read and that isn't saved. That event grows
// until somebody reads it, or until it is saved.
type events struct {
	mu      sync.Mutex
	changed chan struct{} // closed with every change, and replaced

	list  []Event // their ids are 1, 2, 3, …
	saved int     // how many of them are in the database
	end   *End
	endID int
	ended chan struct{} // closed with the end

	reasoning, content, refusal []byte            // all that came
	cut                         place             // where the texts begin that no event has yet
	calls                       []json.RawMessage // that no event has yet
	steps                       []tree.Message    // that were stored before the answer
	from                        place             // where the answer of the last call of the model begins
	thinking, said              time.Time         // when the first piece of the reasoning came, and of the answer
	thoughtCut                  bool

	textBytes, callBytes int

	readers int  // that attend
	stops   bool // when the last of them goes
	left    bool // it went
}

// A place is one in the texts of a reply.
type place struct{ reasoning, content, refusal int }

func newEvents() *events { return &events{changed: make(chan struct{}), ended: make(chan struct{})} }

// change changes the log under its lock and tells the readers.
func (l *events) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

// start adds the first event.
func (l *events) start(started *Started) {
	l.change(func() { l.append(Event{Started: started}) })
}

// append adds an event. It runs under the lock.
func (l *events) append(e Event) {
	e.ID = len(l.list) + 1
	l.list = append(l.list, e)
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
		l.textBytes += chat.QuotedLen(d.Content) + chat.QuotedLen(d.Refusal) - 2*len(`""`)
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

// text is all of the answer's text that readers may have seen.
func (l *events) text() (content, refusal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.content), string(l.refusal)
}

// next returns the events after the event with the id after. It waits until there is
// at least one, or until ctx is done. After the End it returns ErrEnded.
func (l *events) next(ctx context.Context, after int) ([]Event, error) {
	for {
		l.mu.Lock()
		found, ended, changed := l.after(after), l.end != nil, l.changed
		l.mu.Unlock()
		switch {
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

// after gives the events after an id. It runs under the lock.
func (l *events) after(id int) (found []Event) {
	l.freeze(false)
	if id < len(l.list) {
		found = slices.Clip(l.list[id:])
	}
	if l.end != nil && id < l.endID {
		found = append(found, Event{ID: l.endID, End: l.end})
	}
	return found
}

// finish adds the End. Where complete is false, readers on other servers may have
// another one.
func (l *events) finish(end *End, complete bool) {
	l.change(func() {
		l.freeze(true)
		l.end, l.endID = end, LastEventID
		if complete {
			l.endID = len(l.list) + 1
		}
	})
	close(l.ended)
}

// over reports whether the reply has ended, with no event after this id.
func (l *events) over(after int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end != nil && after >= l.endID
}

// unsaved gives the events that are not in the database yet, in the form in which
// they are saved. all is with what would wait for more text.
func (l *events) unsaved(all bool) tree.ReplyEvents {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.freeze(all)
	return tree.ReplyEvents{Sequence: len(l.list), Payload: encode(l.list[l.saved:])}
}

// saves takes note of what was saved.
func (l *events) saves(events tree.ReplyEvents) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.saved = max(l.saved, events.Sequence)
}

// freeze makes an event of what came since the last one, because somebody reads it:
// of reasoning and answer one each. It runs under the lock. Where there are many
// events, it leaves a short text for the next time, unless it is to take all.
func (l *events) freeze(all bool) {
	now := place{len(l.reasoning), len(l.content), len(l.refusal)}
	grown := now.reasoning - l.cut.reasoning + now.content - l.cut.content + now.refusal - l.cut.refusal
	if !all && len(l.list) >= manyEvents && grown < sparseBytes && l.calls == nil {
		return
	}
	if thought := string(l.reasoning[l.cut.reasoning:]); thought != "" {
		l.append(Event{Delta: &Delta{Reasoning: thought}})
	}
	if content, refusal := string(l.content[l.cut.content:]), string(l.refusal[l.cut.refusal:]); content != "" || refusal != "" || l.calls != nil {
		l.append(Event{Delta: &Delta{Content: content, Refusal: refusal, ToolCalls: l.calls}})
	}
	l.cut, l.calls = now, nil
}
