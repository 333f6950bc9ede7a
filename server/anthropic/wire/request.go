// Package wire is Anthropic's Messages API as values: requests, messages, the
// events of a stream, and errors, decoded and encoded. It turns a request's history
// into chat-completions messages, and an answer of chat completions into content
// blocks.
//
// The package asks no store and no model, and sends nothing. Package anthropic does.
package wire

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
)

// A Request is a request for a message. Members that it doesn't have are kept in the
// body alone.
type Request struct {
	Model         string
	MaxTokens     int
	Stream        bool
	Temperature   *float64
	TopP          *float64
	StopSequences []string
	UserID        string // metadata.user_id; "" for none

	// Continues says that the request brings only the messages behind an answer, and that
	// the server has the others (a thread).
	Continues bool

	System   []json.RawMessage // blocks
	Messages []Message
	Tools    bool // it offers some

	body reader.Object // of which Extra reads more
}

// A Message is a message of a request.
type Message struct {
	Role    string
	Content []json.RawMessage // blocks. A content of one string is a block of text
}

const most = math.MaxInt32 // of numbers and elements, which the body's size bounds

// Parse reads the body of a request for a message, or for the number of its tokens.
// Its errors are of kind fault.Invalid and name the member. A member that the package
// doesn't know is no error: clients send new ones all the time.
func Parse(body []byte) (*Request, error) {
	if !isObject(body) {
		return nil, fault.New(fault.Invalid, "invalid_parameter", "", "The request needs a body: a JSON object with model, max_tokens and messages.")
	}
	o := new(reader.Reader).Object(body, nil)
	r := &Request{
		Model: o.Required("model"), Stream: o.Boolean("stream", false), Temperature: o.Number("temperature", 0, 2), TopP: o.Number("top_p", 0, 1),
		UserID: o.Inner("metadata").String("user_id"), Continues: o.Inner("thread").String("type") == "continue",
		System: contentOf(o, "system"), StopSequences: o.Texts("stop_sequences"), body: o,
	}
	if n := o.Integer("max_tokens", 0, most); n != nil {
		r.MaxTokens = *n
	}
	for range o.Objects("tools", most) {
		r.Tools = true
	}
	for _, m := range o.Objects("messages", most) {
		m.Required("role")
		r.Messages = append(r.Messages, Message{m.OneOf("role", "user", "assistant", "system"), contentOf(m, "content")})
	}
	if len(r.Messages) == 0 {
		o.Missing("messages")
	}
	return r, o.Failed()
}

// contentOf reads a content, or a system prompt: one string, or blocks.
func contentOf(o reader.Object, name string) (blocks []json.RawMessage) {
	if value := o.Get(name); value != nil && value[0] == '"' {
		return []json.RawMessage{textBlock(value)}
	}
	for i, raw := range o.List(name, most) {
		o.Object(raw, o.At.Element(name, i)).Required("type")
		blocks = append(blocks, raw)
	}
	return blocks
}

// textBlock makes a block of a text, which may be JSON already.
func textBlock(text any) json.RawMessage { return sdk.JSON("type", "text", "text", text) }

// isObject tells whether bytes are a JSON object. It may have characters that can't be
// stored: storable takes them out of what is.
func isObject(raw []byte) bool {
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(raw)
}
