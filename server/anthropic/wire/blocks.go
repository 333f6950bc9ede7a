package wire

import (
	"encoding/json"
	"strings"

	"github.com/coppice-chat/coppice/chat"
)

// said is what the blocks of an assistant's message say, in the words of chat
// completions.
type said struct {
	text      string
	calls     []chat.Call
	reasoning string
	others    []string // types of blocks that have no form
	formless  bool     // a block says more than this
	goesOn    bool     // a further text is the same paragraph
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
	var given struct {
		Type, Text, Thinking, Signature string
		ID, Name                        string
		Input, Citations                json.RawMessage
	}
	_ = json.Unmarshal(b, &given) // a member of another type says nothing here
	given.Text, given.Thinking = storable(given.Text), storable(given.Thinking)
	switch given.Type {
	case "text":
		s.text += s.gap(given.Text) + given.Text
		s.formless = s.formless || len(given.Citations) > len("null")
		s.goesOn = true
	case "tool_use":
		s.goesOn = true
		s.calls = append(s.calls, chat.Call{ID: given.ID, Name: given.Name, Arguments: string(orEmpty(given.Input))})
	case "thinking":
		if s.reasoning != "" && given.Thinking != "" {
			s.reasoning += paragraph
		}
		s.reasoning += given.Thinking
		if given.Signature != "" {
			s.formless, s.goesOn = true, false
		}
	default:
		s.others, s.formless, s.goesOn = append(s.others, given.Type), true, false
	}
}

// storable is a text without NUL characters, which databases refuse.
func storable(text string) string { return strings.ReplaceAll(text, "\x00", "") }

const paragraph = "\n\n"

// gap is what stands between the text so far and a further block's text. Blocks of
// text that follow each other are one text, cut by its citations. An answer of chat
// completions, which Stream cut into blocks, is one text, too.
func (s *said) gap(text string) string {
	if s.text == "" || text == "" || s.goesOn {
		return ""
	}
	return paragraph
}

// message is what was said; nil for nothing.
func (s said) message() *chat.Message {
	text := s.text
	if strings.TrimSpace(text) == "" && len(s.calls) == 0 {
		if len(s.others) == 0 {
			return nil
		}
		text = "[" + strings.Join(s.others, ", ") + "]"
	}
	m := &chat.Message{Role: chat.Assistant, Calls: s.calls, Reasoning: s.reasoning}
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
