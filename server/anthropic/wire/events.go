package wire

import (
	"encoding/json"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
)

// A Stream writes an answer of chat completions as events, while it comes. Only one
// block is open at a time: text and reasoning go out as they come, and of several
// calls the first one does. Chat completions may mix the pieces of calls, so the
// other calls go out whole, at the end.
type Stream struct {
	answer Answer
	open   string // type of the open block; "" for none
	index  int    // of the open block, or of the next one
	call   int    // index of the call that goes out as it comes; -1 for none
	named  bool   // the call has begun
	late   string // text that came after the call had begun
	sent   bool   // a piece was sent
}

// NewStream returns a Stream of an answer with an ID and a Model.
func NewStream(a Answer) *Stream { return &Stream{answer: a, call: -1} }

// Begin appends the beginning of the stream to dst.
func (s *Stream) Begin(dst []byte) []byte {
	dst = appendEvent(dst, "message_start", "message", s.answer.encode(nil, nil, Usage{}))
	return appendEvent(dst, "ping")
}

// Add appends a piece of the answer to dst.
func (s *Stream) Add(dst []byte, d sdk.Delta) []byte {
	if d.Reasoning != "" && s.call < 0 {
		if s.open != "thinking" {
			dst = s.start(dst, "thinking", thinkingBlock(""))
		}
		dst = s.delta(dst, "thinking_delta", "thinking", d.Reasoning)
	}
	switch {
	case d.Text == "":
	case s.call >= 0:
		s.late += d.Text
	default:
		if s.open != "text" {
			dst = s.start(dst, "text", textBlock(""))
		}
		dst = s.delta(dst, "text_delta", "text", d.Text)
	}
	for _, raw := range d.Calls {
		dst = s.addCall(dst, raw)
	}
	return dst
}

// addCall appends a piece of the first call. Its first piece with a name has the id.
func (s *Stream) addCall(dst []byte, raw json.RawMessage) []byte {
	p, ok := chat.ReadCallPiece(raw)
	if !ok || s.call >= 0 && p.Index != s.call {
		return dst
	}
	s.call = p.Index
	if p.Name != "" && !s.named {
		s.named = true
		dst = s.start(dst, "tool_use", callBlock(chat.Call{ID: p.ID, Name: p.Name}, json.RawMessage("{}")))
	}
	if p.Text != "" && s.named {
		dst = s.delta(dst, "input_json_delta", "partial_json", p.Text)
	}
	return dst
}

// End appends the end of the stream to dst, of which a is the whole answer.
func (s *Stream) End(dst []byte, a Answer) []byte {
	if !s.sent { // the answer is stored, and came in no pieces
		return s.end(s.whole(dst, a.blocks()), a)
	}
	dst = s.stop(dst)
	if s.late != "" {
		dst = s.start(dst, "text", textBlock(""))
		dst = s.stop(s.delta(dst, "text_delta", "text", s.late))
	}
	if a.Message != nil {
		for i, c := range a.Message.Calls {
			if i == s.call && s.named {
				continue
			}
			dst = s.whole(dst, []json.RawMessage{callBlock(c, inputOf(c))})
		}
	}
	return s.end(dst, a)
}

// whole appends blocks that came in no pieces. As the SDKs have it, the texts of a block
// come behind its beginning.
func (s *Stream) whole(dst []byte, blocks []json.RawMessage) []byte {
	for _, b := range blocks {
		kind := typeOf(b)
		members := chat.Members(b)
		var later []chat.Member // kind of delta, and its text
		for i, m := range members {
			switch {
			case m.Name == "input":
				later = append(later, chat.Member{Name: "input_json_delta", Value: quote(string(m.Value))})
				members[i].Value = json.RawMessage("{}")
			case m.Name == kind || m.Name == "signature":
				later = append(later, chat.Member{Name: m.Name + "_delta", Value: m.Value})
				members[i].Value = quote("")
			}
		}
		dst = s.start(dst, kind, chat.AppendObject(nil, members))
		for _, l := range later {
			name := strings.TrimSuffix(l.Name, "_delta")
			if name == "input_json" {
				name = "partial_json"
			}
			dst = s.delta(dst, l.Name, name, chat.String(l.Value))
		}
		dst = s.stop(dst)
	}
	return dst
}

// end appends the events behind the blocks.
func (s *Stream) end(dst []byte, a Answer) []byte {
	dst = appendEvent(dst, "message_delta", "delta", sdk.JSON("stop_reason", a.stopReason(), "stop_sequence", nil), "usage", a.Usage)
	return appendEvent(dst, "message_stop")
}

// start closes the open block and begins another one.
func (s *Stream) start(dst []byte, kind string, block json.RawMessage) []byte {
	dst = s.stop(dst)
	s.open, s.sent = kind, true
	return appendEvent(dst, "content_block_start", "index", s.index, "content_block", block)
}

func (s *Stream) delta(dst []byte, kind, name, text string) []byte {
	return appendEvent(dst, "content_block_delta", "index", s.index, "delta", sdk.JSON("type", kind, name, text))
}

func (s *Stream) stop(dst []byte) []byte {
	if s.open == "" {
		return dst
	}
	dst = appendEvent(dst, "content_block_stop", "index", s.index)
	s.open = ""
	s.index++
	return dst
}

// appendEvent appends a server-sent event of a type.
func appendEvent(dst []byte, kind string, members ...any) []byte {
	return sdk.AppendEvent(dst, kind, sdk.JSON(append([]any{"type", kind}, members...)...))
}
