package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
)

// Received is what came of an answer of Anthropic's, from a stream or whole.
type Received struct {
	Model  string
	Stop   string // the stop reason; "" as long as none came
	Usage  Usage
	Failed string            // the type of the error that ended the stream; "" for none
	Done   bool              // the answer is whole
	Blocks []json.RawMessage // that are whole

	said  said
	open  map[int]*openBlock
	calls int
}

// An openBlock is a block of which more may come.
type openBlock struct {
	start     json.RawMessage
	kind      string
	call      int // its number among the calls
	texts     map[string][]byte
	citations []json.RawMessage
}

// Prefill takes the blocks that the request put into the model's mouth: the answer goes
// on behind them. It returns what they say.
func (a *Received) Prefill(blocks []json.RawMessage) sdk.Delta {
	for _, b := range blocks {
		a.said.begin(b)
		a.close(b)
	}
	return sdk.Delta{Reasoning: string(a.said.reasoning), Text: string(a.said.text)}
}

// Whole takes an answer that came as one message.
func (a *Received) Whole(body []byte) (d sdk.Delta, err error) {
	var m struct {
		Type, Model string
		Content     []json.RawMessage
		StopReason  string `json:"stop_reason"`
		Usage       json.RawMessage
	}
	if !isObject(body) || json.Unmarshal(body, &m) != nil || m.Type != "message" {
		return d, errors.New("the answer is no message")
	}
	a.Model, a.Stop, a.Done = m.Model, m.StopReason, true
	a.count(m.Usage)
	before := a.said
	for _, b := range m.Content {
		a.said.begin(b)
		a.close(b)
	}
	d.Reasoning, d.Text = string(a.said.reasoning[len(before.reasoning):]), string(a.said.text[len(before.text):])
	for i, c := range a.said.calls[len(before.calls):] {
		d.Calls = append(d.Calls, piece(i, c.ID, c.Name, c.Arguments))
	}
	return d, nil
}

// Add takes the data of an event, and returns what is new of the answer.
func (a *Received) Add(data []byte) (d sdk.Delta, err error) {
	var e struct {
		Type    string
		Index   int
		Message struct {
			Model string
			Usage json.RawMessage
		}
		ContentBlock json.RawMessage `json:"content_block"`
		Delta        json.RawMessage
		Usage        json.RawMessage
		Error        struct{ Type string }
	}
	if !isObject(data) || json.Unmarshal(data, &e) != nil {
		return d, errors.New("an event can't be read")
	}
	switch e.Type {
	case "message_start":
		a.Model = e.Message.Model
		a.count(e.Message.Usage)
	case "content_block_start":
		if len(e.ContentBlock) == 0 || e.ContentBlock[0] != '{' {
			return d, errors.New("a block is no object")
		}
		return a.start(e.Index, e.ContentBlock), nil
	case "content_block_delta":
		if b := a.open[e.Index]; b != nil && len(e.Delta) > 0 && e.Delta[0] == '{' {
			return a.more(b, e.Delta), nil
		}
	case "content_block_stop":
		if b := a.open[e.Index]; b != nil {
			delete(a.open, e.Index)
			a.close(b.whole())
		}
	case "message_delta":
		if len(e.Delta) > 0 && e.Delta[0] == '{' {
			a.Stop = stringOf(e.Delta, "stop_reason")
		}
		a.count(e.Usage)
	case "message_stop":
		a.Done = true
	case "error":
		a.Failed = e.Error.Type
	}
	return d, nil
}

// count takes a usage. In a stream, a later one counts all until then; what it leaves out
// stays.
func (a *Received) count(usage json.RawMessage) {
	_ = json.Unmarshal(usage, &a.Usage) // none, or of other types, says nothing
}

// start takes the beginning of a block.
func (a *Received) start(index int, block json.RawMessage) (d sdk.Delta) {
	b := &openBlock{start: bytes.Clone(block), kind: typeOf(block), texts: map[string][]byte{}}
	if a.open == nil {
		a.open = map[int]*openBlock{}
	}
	a.open[index] = b
	d = a.said.begin(block)
	if b.kind == "tool_use" {
		b.call = a.calls
		a.calls++
		d.Calls = []json.RawMessage{piece(b.call, stringOf(block, "id"), stringOf(block, "name"), "")}
	}
	return d
}

// more takes a piece of a block: each text in it is one more piece of the block's
// member of this name.
func (a *Received) more(b *openBlock, delta json.RawMessage) (d sdk.Delta) {
	for name, value := range chat.EachMember(delta) {
		switch name := string(name); {
		case name == "citation":
			b.citations = append(b.citations, bytes.Clone(value))
		case name == "type" || value[0] != '"':
		default:
			text := chat.String(value)
			b.texts[name] = append(b.texts[name], text...)
			switch {
			case name == b.kind && (name == "text" || name == "thinking"):
				d = a.said.say(name, text)
			case name == "partial_json" && b.kind == "tool_use":
				d.Calls = []json.RawMessage{piece(b.call, "", "", text)}
			}
		}
	}
	return d
}

// whole is the block with all of its pieces.
func (b *openBlock) whole() json.RawMessage {
	block := b.start
	for name, text := range b.texts {
		switch input := json.RawMessage(text); {
		case name != "partial_json":
			block = chat.WithMember(block, name, quote(stringOf(b.start, name)+string(text)))
		case isObject(input):
			block = chat.WithMember(block, "input", input)
		default: // cut off
			block = chat.WithMember(block, "input", sdk.JSON("partial_json", string(text)))
		}
	}
	if b.citations != nil {
		block = chat.WithMember(block, "citations", chat.AppendArray(nil, b.citations))
	}
	return block
}

// close takes a whole block.
func (a *Received) close(block json.RawMessage) {
	a.Blocks = append(a.Blocks, bytes.Clone(block))
	a.said.end(block)
}

// Message returns the answer as a chat-completions message, and its reasoning; nil if
// the answer says nothing.
func (a *Received) Message() (m json.RawMessage, reasoning string) {
	if said := a.said.message(); said != nil {
		m = said.Encode()
	}
	return m, string(a.said.reasoning)
}

// Text is the text of Message, without what stands for blocks that have no form.
func (a *Received) Text() string { return string(a.said.text) }

// Record returns all blocks, if one of them has no form in chat completions; nil
// otherwise.
func (a *Received) Record() json.RawMessage { return a.said.record(a.Blocks) }

// FinishReason is the word of chat completions for the stop reason.
func (a *Received) FinishReason() string {
	switch a.Stop {
	case "end_turn", "stop_sequence":
		return "stop"
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "tool_use":
		return "tool_calls"
	case "refusal":
		return "content_filter"
	}
	return a.Stop
}

// piece is a piece of a call in chat completions.
func piece(index int, id, name, arguments string) json.RawMessage {
	kind := ""
	if name != "" {
		kind = "function"
	}
	return sdk.JSON("index", index, "id?", id, "type?", kind, "function", sdk.JSON("name?", name, "arguments", arguments))
}

// ReadEvent returns the bytes of the next server-sent event of a stream, up to the empty
// line behind it, and its data. data is nil of a comment. After the last event it returns
// io.EOF.
func ReadEvent(stream *bufio.Reader) (event, data []byte, err error) {
	for {
		line, err := stream.ReadBytes('\n')
		event = append(event, line...)
		if err != nil {
			return event, data, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return event, data, nil
		}
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
		}
	}
}
