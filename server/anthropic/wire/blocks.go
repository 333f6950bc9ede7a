package wire

import (
	"encoding/json"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
)

// said is what the blocks of an assistant's message say, in the words of chat
// completions.
type said struct {
	text, reasoning []byte
	calls           []chat.Call
	others          []string // types of blocks that have no form
	formless        bool     // a block says more than this
	goesOn          bool     // a further text is the same paragraph
	begun           bool     // the block has said something
}

// saidBy reads the blocks of an assistant's message.
func saidBy(blocks []json.RawMessage) (s said) {
	for _, b := range blocks {
		s.add(b)
	}
	return s
}

// add reads one more block.
func (s *said) add(b json.RawMessage) {
	s.begin(b)
	s.end(b)
}

// begin reads what a block says at its beginning, and gives it.
func (s *said) begin(b json.RawMessage) (d sdk.Delta) {
	s.begun = false
	if kind := typeOf(b); kind == "text" || kind == "thinking" {
		d = s.say(kind, stringOf(b, kind))
	}
	return d
}

// say takes a piece of a block of text or reasoning, and gives what is new. The block's
// first one is set apart from what was said before. But blocks of text that follow each
// other are one text, cut by its citations, and so is an answer of chat completions, which
// Stream cut into blocks.
func (s *said) say(kind, text string) (d sdk.Delta) {
	all, added, apart := &s.text, &d.Text, !s.goesOn
	if kind == "thinking" {
		all, added, apart = &s.reasoning, &d.Reasoning, true
	}
	if text = storable(text); text == "" {
		return d
	}
	if apart && !s.begun && len(*all) > 0 {
		text = "\n\n" + text
	}
	s.begun, *all, *added = true, append(*all, text...), text
	return d
}

// end reads all else of a whole block.
func (s *said) end(b json.RawMessage) {
	switch kind := typeOf(b); kind {
	case "text":
		s.formless = s.formless || len(chat.MemberOf(b, "citations")) > len("null")
		s.goesOn = true
	case "tool_use":
		s.goesOn = true
		s.calls = append(s.calls, chat.Call{ID: stringOf(b, "id"), Name: stringOf(b, "name"), Arguments: string(orEmpty(chat.MemberOf(b, "input")))})
	case "thinking":
		if stringOf(b, "signature") != "" {
			s.formless, s.goesOn = true, false
		}
	default:
		s.others, s.formless, s.goesOn = append(s.others, kind), true, false
	}
}

// storable is a text without NUL characters, which databases refuse.
func storable(text string) string { return strings.ReplaceAll(text, "\x00", "") }

// message is what was said; nil for nothing.
func (s said) message() *chat.Message {
	text := string(s.text)
	if strings.TrimSpace(text) == "" && len(s.calls) == 0 {
		if len(s.others) == 0 {
			return nil
		}
		text = "[" + strings.Join(s.others, ", ") + "]"
	}
	m := &chat.Message{Role: chat.Assistant, Calls: s.calls, Reasoning: string(s.reasoning)}
	if strings.TrimSpace(text) != "" {
		m.Parts = []chat.Part{chat.TextPart(text)}
	}
	return m
}

// record is all blocks, if one of them says more than the message; nil otherwise.
func (s said) record(blocks []json.RawMessage) json.RawMessage {
	if !s.formless {
		return nil
	}
	return chat.AppendArray(nil, blocks)
}

func orEmpty(input json.RawMessage) json.RawMessage {
	if len(input) == 0 {
		return json.RawMessage("{}")
	}
	return input
}

// typeOf is the type of a block; "" for none.
func typeOf(b json.RawMessage) string { return stringOf(b, "type") }

// textOf is the text of a block of text.
func textOf(b json.RawMessage) string { return stringOf(b, "text") }

// stringOf is the member of an object that is a string; "" for none.
func stringOf(object json.RawMessage, name string) string {
	if value := chat.MemberOf(object, name); len(value) > 0 && value[0] == '"' {
		return chat.String(value)
	}
	return ""
}
