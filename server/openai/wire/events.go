package wire

import (
	"encoding/json"
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

// send appends an event with these members, but for one that the client has.
func (s *Stream) send(dst []byte, kind string, members ...any) []byte {
	seq := s.seq
	if s.seq++; seq <= s.after {
		return dst
	}
	return sdk.AppendEvent(dst, kind, sdk.JSON(append([]any{"type", kind, "sequence_number", seq}, members...)...))
}

// part appends an event of a part of the open item.
func (s *Stream) part(dst []byte, kind, item string, content int, members ...any) []byte {
	return s.send(dst, kind, append([]any{"item_id", item, "output_index", s.open, "content_index", content}, members...)...)
}

var done = []byte("[DONE]")

// Begin appends the beginning of the stream to dst.
func (s *Stream) Begin(dst []byte) []byte {
	first := InProgress
	if s.turn.Echo.Background {
		first = Queued
	}
	dst = s.send(dst, "response.created", "response", s.turn.Begun(first))
	if first == Queued {
		dst = s.send(dst, "response.queued", "response", s.turn.Begun(Queued))
	}
	dst = s.send(dst, "response.in_progress", "response", s.turn.Begun(InProgress))
	if s.turn.Compaction != nil {
		dst = s.Compact(dst, *s.turn.Compaction)
	}
	return dst
}

// Compact appends the item of a compaction that ended after Begin and before
// any piece of the answer.
func (s *Stream) Compact(dst []byte, c Compaction) []byte {
	s.turn.Compaction = &c
	at, item := s.begin(), c.Item()
	return s.itemDone(s.added(dst, at, item), at, item)
}

// begin gives the output index of a new item.
func (s *Stream) begin() int {
	s.output++
	return s.output - 1
}

func (s *Stream) added(dst []byte, at int, item Item) []byte {
	return s.send(dst, "response.output_item.added", "output_index", at, "item", item)
}

func (s *Stream) itemDone(dst []byte, at int, item Item) []byte {
	return s.send(dst, "response.output_item.done", "output_index", at, "item", item)
}

// Add appends the next piece of the answer to dst.
func (s *Stream) Add(dst []byte, d sdk.Delta) []byte {
	if d.Reasoning != "" && s.at <= reasoning {
		dst = s.reason(dst, d.Reasoning)
	}
	if d.Text != "" && s.at <= speaking {
		dst = s.speak(dst, &s.textAt, outputText(""))
		s.text.WriteString(d.Text)
		dst = s.part(dst, "response.output_text.delta", s.said(), s.textAt, "delta", d.Text, "logprobs", noElements)
	}
	if d.Refusal != "" && s.at <= speaking {
		dst = s.speak(dst, &s.refusalAt, refusalPart(""))
		s.refusal.WriteString(d.Refusal)
		dst = s.part(dst, "response.refusal.delta", s.said(), s.refusalAt, "delta", d.Refusal)
	}
	for _, raw := range d.Calls {
		dst = s.call(dst, raw)
	}
	return dst
}

func (s *Stream) reason(dst []byte, text string) []byte {
	id := s.turn.Node.item(KindReasoning, ordinalReasoning)
	if s.at < reasoning {
		s.at, s.open = reasoning, s.begin()
		dst = s.added(dst, s.open, reasoningItem(s.turn.Node, ""))
		dst = s.part(dst, "response.content_part.added", id, 0, "part", textPart("reasoning_text", ""))
	}
	s.reasoning.WriteString(text)
	return s.part(dst, "response.reasoning_text.delta", id, 0, "delta", text)
}

// said is the id of the message.
func (s *Stream) said() string { return s.turn.Node.item(KindMessage, ordinalSaid) }

// speak begins the message, and the part of its text or of its refusal.
func (s *Stream) speak(dst []byte, at *int, part json.RawMessage) []byte {
	if s.at < speaking {
		dst = s.close(dst, Completed)
		s.at, s.open = speaking, s.begin()
		dst = s.added(dst, s.open, messageItem(s.turn.Node, chat.Assistant, InProgress, ""))
	}
	if *at < 0 {
		*at = max(s.textAt, s.refusalAt) + 1
		dst = s.part(dst, "response.content_part.added", s.said(), *at, "part", part)
	}
	return dst
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
			dst = s.close(dst, Completed)
			s.at, s.firstCall = calling, s.output
		}
		dst = s.added(dst, s.begin(), callItem(s.turn.Node, s.begunCalls, call.Call, s.names, InProgress))
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
	return s.send(dst, kind, "item_id", s.turn.Node.item(KindCall, ordinalCalls+index), "output_index", s.firstCall+index, "delta", text)
}

// close ends what is open, with the status of its last item.
func (s *Stream) close(dst []byte, status Status) []byte {
	switch s.at {
	case reasoning:
		text := s.reasoning.String()
		item := reasoningItem(s.turn.Node, text)
		dst = s.part(dst, "response.reasoning_text.done", item.ID, 0, "text", text)
		dst = s.part(dst, "response.content_part.done", item.ID, 0, "part", textPart("reasoning_text", text))
		dst = s.itemDone(dst, s.open, item)
	case speaking:
		var content []json.RawMessage
		for part := range max(s.textAt, s.refusalAt) + 1 {
			if text := s.text.String(); part == s.textAt {
				content = append(content, outputText(text))
				dst = s.part(dst, "response.output_text.done", s.said(), part, "text", text, "logprobs", noElements)
			} else {
				content = append(content, refusalPart(s.refusal.String()))
				dst = s.part(dst, "response.refusal.done", s.said(), part, "refusal", s.refusal.String())
			}
			dst = s.part(dst, "response.content_part.done", s.said(), part, "part", content[part])
		}
		dst = s.itemDone(dst, s.open, messageItem(s.turn.Node, chat.Assistant, status, "", content...))
	case calling:
		for i, call := range s.calls[:s.begunCalls] {
			of := Completed
			if i == s.begunCalls-1 {
				of = status
			}
			at, item := s.firstCall+i, callItem(s.turn.Node, i, call.whole(), s.names, of)
			switch member := func(name string) json.RawMessage { return chat.MemberOf(item.Raw, name) }; string(member("type")) {
			case `"function_call"`:
				dst = s.send(dst, "response.function_call_arguments.done", "item_id", item.ID, "output_index", at, "name", member("name"), "arguments", member("arguments"))
			case `"custom_tool_call"`:
				dst = s.send(dst, "response.custom_tool_call_input.done", "item_id", item.ID, "output_index", at, "input", member("input"))
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
	kind := Cut // no event says that a response was cancelled
	if last.Status == Completed || last.Status == Failed {
		kind = last.Status
	}
	// A stream that is written again may have fewer events than the client has.
	// It gets the end all the same.
	s.seq = max(s.seq, s.after+1)
	dst = s.send(dst, "response."+string(kind), "response", last)
	return sdk.AppendEvent(dst, "", done)
}

// Break ends the stream before the end of the answer. It writes the error
// twice, because some clients read the members of the event, and others those
// of its error.
func (s *Stream) Break(dst []byte, why ErrorBody) []byte {
	return sdk.AppendEvent(dst, "error", sdk.JSON("type", "error", "sequence_number", max(s.seq, s.after+1),
		"code", why.Code, "message", why.Message, "param", why.Param, "error", why))
}
