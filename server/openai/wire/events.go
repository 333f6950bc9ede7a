package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
)

// A Writer writes an answer as events, in one of OpenAI's forms: a Stream, or Chunks. Each
// method appends server-sent events to dst, the last one of which says [DONE].
type Writer interface {
	Begin(dst []byte) []byte
	Compact(dst []byte, c Compaction) []byte // an item for a compaction that ended after Begin and before the answer
	Add(dst []byte, d sdk.Delta) []byte      // the next piece of the answer
	End(dst []byte, end End) []byte          // of an answer of which no piece came, it appends the stored one first
	Break(dst []byte, why ErrorBody) []byte  // ends the stream before the answer's end
}

// A Stream writes an answer as the events of the Responses API. Each method
// appends server-sent events to dst. The last event says [DONE].
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
	texts      [len(textForms)]strings.Builder
	parts      []int // texts of the open item, in their order

	calls      calls
	firstCall  int // output index of the first call
	begunCalls int
}

// A stage is what an answer has come to.
type stage int

const (
	nothingYet stage = iota
	reasoning
	speaking
	calling
)

// textForms are the texts of an answer, in the order of a Delta: at which stage they come,
// their events, the member that has the text, and their part of an item.
var textForms = [...]struct {
	stage          stage
	events, member string
	part           func(text string) json.RawMessage
	logprobs       json.RawMessage // nil for none
}{
	{reasoning, "response.reasoning_text", "text", reasoningPart, nil},
	{speaking, "response.output_text", "text", outputText, noElements},
	{speaking, "response.refusal", "refusal", refusalPart, nil},
}

// NewStream returns a Stream. It leaves out the events up to the number after,
// which the client has already; -1 leaves out none.
func NewStream(turn Turn, after int) *Stream {
	return &Stream{turn: turn, names: turn.Echo.names(), after: after}
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
func (s *Stream) part(dst []byte, kind string, content int, members ...any) []byte {
	id := s.turn.Node.item(KindMessage, ordinalSaid)
	if s.at == reasoning {
		id = s.turn.Node.item(KindReasoning, ordinalReasoning)
	}
	return s.send(dst, kind, append([]any{"item_id", id, "output_index", s.open, "content_index", content}, members...)...)
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

// Compact implements Writer.
func (s *Stream) Compact(dst []byte, c Compaction) []byte {
	s.turn.Compaction = &c
	at, item := s.begin(), c.Item()
	return s.item(s.item(dst, "added", at, item), "done", at, item)
}

// begin gives the output index of a new item.
func (s *Stream) begin() int {
	s.output++
	return s.output - 1
}

// item appends the event by which an item is added or done.
func (s *Stream) item(dst []byte, event string, at int, item Item) []byte {
	return s.send(dst, "response.output_item."+event, "output_index", at, "item", item)
}

// Add appends the next piece of the answer to dst.
func (s *Stream) Add(dst []byte, d sdk.Delta) []byte {
	for i, piece := range [...]string{d.Reasoning, d.Text, d.Refusal} {
		if piece != "" && s.at <= textForms[i].stage {
			dst = s.say(dst, i, piece)
		}
	}
	for _, raw := range d.Calls {
		dst = s.call(dst, raw)
	}
	return dst
}

// say takes a piece of a text, of which the first begins the item and the part.
func (s *Stream) say(dst []byte, text int, piece string) []byte {
	form := textForms[text]
	if s.at < form.stage {
		dst = s.close(dst, Completed)
		s.at, s.open, s.parts = form.stage, s.begin(), nil
		dst = s.item(dst, "added", s.open, s.spoken(InProgress))
	}
	part := slices.Index(s.parts, text)
	if part < 0 {
		part, s.parts = len(s.parts), append(s.parts, text)
		dst = s.part(dst, "response.content_part.added", part, "part", form.part(""))
	}
	s.texts[text].WriteString(piece)
	return s.part(dst, form.events+".delta", part, "delta", piece, "logprobs?", form.logprobs)
}

// spoken is the open reasoning or message.
func (s *Stream) spoken(status Status, content ...json.RawMessage) Item {
	if s.at == reasoning {
		return reasoningItem(s.turn.Node, content...)
	}
	return messageItem(s.turn.Node, chat.Assistant, status, "", content...)
}

// call takes a piece of a call. A call begins once its id and name are there,
// and those before it have begun.
func (s *Stream) call(dst []byte, raw []byte) []byte {
	at, arguments := s.calls.add(raw)
	if at < 0 {
		return dst
	}
	if at < s.begunCalls {
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
		dst = s.item(dst, "added", s.begin(), callItem(s.turn.Node, s.begunCalls, call.Call, s.names, InProgress))
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
	case reasoning, speaking:
		var content []json.RawMessage
		for part, i := range s.parts {
			form, text := textForms[i], s.texts[i].String()
			content = append(content, form.part(text))
			dst = s.part(dst, form.events+".done", part, form.member, text, "logprobs?", form.logprobs)
			dst = s.part(dst, "response.content_part.done", part, "part", content[part])
		}
		dst = s.item(dst, "done", s.open, s.spoken(status, content...))
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
			dst = s.item(dst, "done", at, item)
		}
	}
	return dst
}

// End appends the end of the stream to dst. If no piece of the answer was sent,
// it appends the stored answer first.
func (s *Stream) End(dst []byte, end End) []byte {
	if s.at == nothingYet && end.Message != nil {
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
