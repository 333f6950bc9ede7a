package wire

import (
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
)

// A Writer writes an answer as events, in one of OpenAI's forms: a Stream, or Chunks. Each
// method appends server-sent events to dst, the last one of which says [DONE].
type Writer interface {
	Begin(dst []byte) []byte
	Add(dst []byte, d sdk.Delta) []byte     // the next piece of the answer
	End(dst []byte, end End) []byte         // of an answer of which no piece came, it appends the stored one first
	Break(dst []byte, why ErrorBody) []byte // ends the stream before the answer's end
}

// A Stream writes an answer as the events of the Responses API. Each method
// appends server-sent events to dst. The last event says [DONE].
//
//	s := NewStream(turn, -1)
//	dst = s.Begin(dst)
//	for … {
//		dst = s.Add(dst, delta)
//	}
//	dst = s.End(dst, end)
//
// If only the stored message is left, Begin and End alone write the stream
// again.
//
// Items begin in a fixed order: reasoning, the message, calls. If a model
// reasons again after its text has begun, or speaks after a call, that part is
// in the final response alone, because its item is done already.
type Stream struct {
	turn  Turn
	names toolNames

	seq, after int // number of the next event; that of the last one that the client has
	output     int // items begun
	at         stage
	open       int // output index of the open reasoning or message

	reasoning, text, refusal strings.Builder
	textAt, refusalAt        int // content indexes; -1 for none
	calls                    calls
	firstCall                int // output index of the first call
	begunCalls               int
}

// A stage is what an answer has come to.
type stage int

const (
	nothingYet stage = iota
	reasoning
	speaking
	calling
)

// NewStream returns a Stream. It leaves out the events up to the number after,
// which the client has already; -1 leaves out none.
func NewStream(turn Turn, after int) *Stream {
	return &Stream{turn: turn, names: turn.Echo.names(), after: after, textAt: -1, refusalAt: -1}
}

// An event is an event of the Responses API.
type event struct {
	Type      string      `json:"type"`
	Seq       int         `json:"sequence_number"`
	Response  *Response   `json:"response,omitempty"`
	ItemID    string      `json:"item_id,omitempty"`
	Output    *int        `json:"output_index,omitempty"`
	Content   *int        `json:"content_index,omitempty"`
	Item      Item        `json:"item,omitempty"`
	Part      any         `json:"part,omitempty"`
	Delta     *string     `json:"delta,omitempty"`
	Text      *string     `json:"text,omitempty"`
	Refusal   *string     `json:"refusal,omitempty"`
	Name      *string     `json:"name,omitempty"`
	Arguments *string     `json:"arguments,omitempty"`
	Input     *string     `json:"input,omitempty"`
	Logprobs  *[]struct{} `json:"logprobs,omitempty"`
}

var noLogprobs = &[]struct{}{}

func (s *Stream) send(dst []byte, e event) []byte {
	e.Seq = s.seq
	s.seq++
	if e.Seq <= s.after {
		return dst
	}
	return sdk.AppendEvent(dst, e.Type, chat.MustMarshal(e))
}

var done = []byte("[DONE]")

// Begin appends the beginning of the stream to dst.
func (s *Stream) Begin(dst []byte) []byte {
	begun := s.turn.Begun(InProgress)
	if s.turn.Echo.Background {
		queued := s.turn.Begun(Queued)
		dst = s.send(dst, event{Type: "response.created", Response: &queued})
		dst = s.send(dst, event{Type: "response.queued", Response: &queued})
	} else {
		dst = s.send(dst, event{Type: "response.created", Response: &begun})
	}
	dst = s.send(dst, event{Type: "response.in_progress", Response: &begun})
	if s.turn.Compaction != nil {
		dst = s.Compact(dst, *s.turn.Compaction)
	}
	return dst
}

// Compact appends the item of a compaction that ended after Begin and before
// any piece of the answer.
func (s *Stream) Compact(dst []byte, item CompactionItem) []byte {
	s.turn.Compaction = &item
	at := s.begin()
	return s.itemDone(s.added(dst, at, item), at, item)
}

// begin gives the output index of a new item.
func (s *Stream) begin() int {
	s.output++
	return s.output - 1
}

func (s *Stream) added(dst []byte, at int, item Item) []byte {
	return s.send(dst, event{Type: "response.output_item.added", Output: &at, Item: item})
}

func (s *Stream) itemDone(dst []byte, at int, item Item) []byte {
	return s.send(dst, event{Type: "response.output_item.done", Output: &at, Item: item})
}

// Add appends the next piece of the answer to dst.
func (s *Stream) Add(dst []byte, d sdk.Delta) []byte {
	if d.Reasoning != "" && s.at <= reasoning {
		dst = s.reason(dst, d.Reasoning)
	}
	if d.Text != "" && s.at <= speaking {
		dst = s.speak(dst, &s.text, &s.textAt, "response.output_text.delta", newOutputText(""), d.Text)
	}
	if d.Refusal != "" && s.at <= speaking {
		dst = s.speak(dst, &s.refusal, &s.refusalAt, "response.refusal.delta", refusalPart{"refusal", ""}, d.Refusal)
	}
	for _, raw := range d.Calls {
		dst = s.call(dst, raw)
	}
	return dst
}

func (s *Stream) reason(dst []byte, text string) []byte {
	item, part := newReasoningItem(s.turn.Node), 0
	if s.at < reasoning {
		s.at, s.open = reasoning, s.begin()
		dst = s.added(dst, s.open, item)
		dst = s.send(dst, event{Type: "response.content_part.added", ItemID: item.ID, Output: &s.open, Content: &part, Part: textPart{"reasoning_text", ""}})
	}
	s.reasoning.WriteString(text)
	return s.send(dst, event{Type: "response.reasoning_text.delta", ItemID: item.ID, Output: &s.open, Content: &part, Delta: &text})
}

// speak sends a piece of the message's text or refusal, each of which is a part
// of its own.
func (s *Stream) speak(dst []byte, all *strings.Builder, at *int, kind string, part any, text string) []byte {
	item := newMessageItem(s.turn.Node, "assistant", statusInProgress)
	if s.at < speaking {
		dst = s.close(dst, statusCompleted)
		s.at, s.open = speaking, s.begin()
		dst = s.added(dst, s.open, item)
	}
	if *at < 0 {
		*at = max(s.textAt, s.refusalAt) + 1
		dst = s.send(dst, event{Type: "response.content_part.added", ItemID: item.ID, Output: &s.open, Content: at, Part: part})
	}
	all.WriteString(text)
	e := event{Type: kind, ItemID: item.ID, Output: &s.open, Content: at, Delta: &text}
	if all == &s.text {
		e.Logprobs = noLogprobs
	}
	return s.send(dst, e)
}

// call takes a piece of a call. A call begins once its id and name are there,
// and those before it have begun.
func (s *Stream) call(dst []byte, raw []byte) []byte {
	at, arguments := s.calls.add(raw)
	if at < 0 {
		return dst
	}
	if s.calls[at].begun {
		return s.arguments(dst, at, arguments)
	}
	for s.begunCalls < len(s.calls) {
		call := s.calls[s.begunCalls]
		if call.ID == "" || call.Name == "" {
			break
		}
		if s.at < calling {
			dst = s.close(dst, statusCompleted)
			s.at, s.firstCall = calling, s.output
		}
		dst = s.added(dst, s.begin(), newCallItem(s.turn.Node, s.begunCalls, call.Call, s.names, statusInProgress))
		call.begun = true
		s.begunCalls++
		dst = s.arguments(dst, s.begunCalls-1, call.arguments.String())
	}
	return dst
}

func (s *Stream) arguments(dst []byte, index int, text string) []byte {
	kind := "response.function_call_arguments.delta"
	switch call := s.calls[index]; {
	case text == "":
		return dst
	case call.Custom:
		kind = "response.custom_tool_call_input.delta"
	case s.names.of(call.Name).kind != toolFunction: // the item is known at the end
		return dst
	}
	at := s.firstCall + index
	return s.send(dst, event{
		Type: kind, ItemID: s.turn.Node.item(KindCall, ordinalCalls+index), Output: &at, Delta: &text,
	})
}

// close ends what is open, with the status of its last item.
func (s *Stream) close(dst []byte, status string) []byte {
	switch s.at {
	case reasoning:
		item, part, text := newReasoningItem(s.turn.Node), 0, s.reasoning.String()
		whole := textPart{"reasoning_text", text}
		item.Content = []textPart{whole}
		dst = s.send(dst, event{Type: "response.reasoning_text.done", ItemID: item.ID, Output: &s.open, Content: &part, Text: &text})
		dst = s.send(dst, event{Type: "response.content_part.done", ItemID: item.ID, Output: &s.open, Content: &part, Part: whole})
		dst = s.itemDone(dst, s.open, item)
	case speaking:
		item := newMessageItem(s.turn.Node, "assistant", status)
		for part := range max(s.textAt, s.refusalAt) + 1 {
			e := event{ItemID: item.ID, Output: &s.open, Content: &part}
			text, whole := s.text.String(), any(newOutputText(s.text.String()))
			e.Type, e.Text, e.Logprobs = "response.output_text.done", &text, noLogprobs
			if part == s.refusalAt {
				refusal := s.refusal.String()
				whole = refusalPart{"refusal", refusal}
				e.Type, e.Text, e.Refusal, e.Logprobs = "response.refusal.done", nil, &refusal, nil
			}
			dst = s.send(dst, e)
			dst = s.send(dst, event{Type: "response.content_part.done", ItemID: item.ID, Output: &s.open, Content: &part, Part: whole})
			item.Content = append(item.Content, whole)
		}
		dst = s.itemDone(dst, s.open, item)
	case calling:
		for i, call := range s.calls[:s.begunCalls] {
			of := statusCompleted
			if i == s.begunCalls-1 {
				of = status
			}
			at := s.firstCall + i
			item := newCallItem(s.turn.Node, i, call.whole(), s.names, of)
			switch whole := call.whole(); item.Type {
			case "function_call":
				dst = s.send(dst, event{Type: "response.function_call_arguments.done", ItemID: item.ID, Output: &at, Name: &item.Name, Arguments: &whole.Arguments})
			case "custom_tool_call":
				dst = s.send(dst, event{Type: "response.custom_tool_call_input.done", ItemID: item.ID, Output: &at, Input: item.Input})
			}
			dst = s.itemDone(dst, at, item)
		}
	}
	return dst
}

// Said tells whether a piece of the answer was sent.
func (s *Stream) Said() bool { return s.at != nothingYet }

// End appends the end of the stream to dst. If no piece of the answer was sent,
// it appends the stored answer first.
func (s *Stream) End(dst []byte, end End) []byte {
	if !s.Said() && end.Message != nil {
		dst = s.Add(dst, deltaOf(end.Message))
	}
	dst = s.close(dst, end.lastItem())
	last := s.turn.Ended(end)
	kind := "response.incomplete" // no event says that a response was cancelled
	switch Status(last.Status) {
	case Completed, Failed:
		kind = "response." + last.Status
	}
	// A stream that is written again may have fewer events than the client has.
	// It gets the end all the same.
	s.seq = max(s.seq, s.after+1)
	dst = s.send(dst, event{Type: kind, Response: &last})
	return sdk.AppendEvent(dst, "", done)
}

// Break ends the stream before the end of the answer. It writes the error
// twice, because some clients read the members of the event, and others those
// of its error.
func (s *Stream) Break(dst []byte, why ErrorBody) []byte {
	return sdk.AppendEvent(dst, "error", chat.MustMarshal(struct {
		Type    string    `json:"type"`
		Seq     int       `json:"sequence_number"`
		Code    *string   `json:"code"`
		Message string    `json:"message"`
		Param   *string   `json:"param"`
		Error   ErrorBody `json:"error"`
	}{"error", max(s.seq, s.after+1), why.Code, why.Message, why.Param, why}))
}
