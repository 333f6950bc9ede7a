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

	"github.com/coppice-chat/coppice/chat"
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
	TopK          json.RawMessage // nil for none
	StopSequences []string
	UserID        string // metadata.user_id; "" for none

	// Continues says that the request brings only the messages behind an answer, and that
	// the server has the others (a thread).
	Continues bool

	System   []json.RawMessage // blocks
	Messages []Message
	Tools    []Tool
	Choice   Choice
	Schema   json.RawMessage // of output_config.format; nil for none
}

// A Message is a message of a request.
type Message struct {
	Role    string
	Content []json.RawMessage // blocks. A content of one string is a block of text
}

// A Tool is a tool that the client runs, or one of Anthropic's own.
type Tool struct {
	Type        string // "" and custom are tools of the client; any other is Anthropic's
	Name        string
	Description string
	InputSchema json.RawMessage `json:"input_schema"`
}

// own tells whether a tool is of a type that only Anthropic's models know.
func (t Tool) own() bool { return t.Type != "" && t.Type != "custom" }

// A Choice says which tool the model is to call.
type Choice struct {
	Type    string // auto, any, tool or none; "" leaves it to the model
	Name    string // of the type tool
	OnlyOne bool   `json:"disable_parallel_tool_use"`
}

// Parse reads the body of a request for a message, or for the number of its tokens.
// Its errors are of kind fault.Invalid and name the member. A member that the package
// doesn't know is no error: clients send new ones all the time.
func Parse(body []byte) (*Request, error) {
	if len(body) == 0 {
		return nil, wrong("", "The request needs a body: a JSON object with model, max_tokens and messages.")
	}
	if !isObject(body) {
		return nil, wrong("", "The body is no JSON object.")
	}
	var given struct {
		Model         string
		MaxTokens     int `json:"max_tokens"`
		Stream        bool
		Temperature   *float64
		TopP          *float64        `json:"top_p"`
		TopK          json.RawMessage `json:"top_k"`
		StopSequences []string        `json:"stop_sequences"`
		Metadata      struct {
			UserID string `json:"user_id"`
		}
		Thread       struct{ Type string }
		Tools        []Tool
		ToolChoice   *Choice `json:"tool_choice"`
		OutputConfig struct {
			Format struct{ Schema json.RawMessage }
		} `json:"output_config"`
	}
	if err := json.Unmarshal(body, &given); err != nil {
		field := ""
		if e, ok := err.(*json.UnmarshalTypeError); ok {
			field = e.Field
		}
		return nil, wrong(field, "The member has a value of a type that it can't have.")
	}
	r := &Request{
		Model: given.Model, MaxTokens: given.MaxTokens, Stream: given.Stream, Temperature: given.Temperature, TopP: given.TopP, TopK: given.TopK,
		StopSequences: given.StopSequences, UserID: given.Metadata.UserID, Tools: given.Tools, Schema: given.OutputConfig.Format.Schema,
	}
	r.Continues = given.Thread.Type == "continue"
	if given.ToolChoice != nil {
		r.Choice = *given.ToolChoice
	}
	if r.Model == "" {
		return nil, wrong("model", "The request names no model.")
	}
	for name, value := range chat.EachMember(body) {
		var err error
		switch string(name) {
		case "system":
			r.System, err = contentOf(value, "system")
		case "messages":
			r.Messages, err = messagesOf(value)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(r.Messages) == 0 {
		return nil, wrong("messages", "The request has no messages. Send one or more.")
	}
	return r, nil
}

func messagesOf(value json.RawMessage) (messages []Message, err error) {
	if value[0] != '[' {
		return nil, wrong("messages", "This must be an array of messages.")
	}
	for raw := range chat.Elements(value) {
		at := fieldAt("messages", len(messages))
		if raw[0] != '{' {
			return nil, wrong(at, "A message must be an object with role and content.")
		}
		var m Message
		for name, value := range chat.EachMember(raw) {
			switch string(name) {
			case "role":
				_ = json.Unmarshal(value, &m.Role) // what is no string is no role
			case "content":
				if m.Content, err = contentOf(value, at+".content"); err != nil {
					return nil, err
				}
			}
		}
		switch m.Role {
		case "user", "assistant", "system":
		default:
			return nil, wrong(at+".role", "A message's role is user, assistant or system.")
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// contentOf reads a content, or a system prompt: one string, or blocks.
func contentOf(value json.RawMessage, field string) (blocks []json.RawMessage, err error) {
	switch value[0] {
	case '"':
		return []json.RawMessage{textBlock(value)}, nil
	case 'n':
		return nil, nil
	case '[':
	default:
		return nil, wrong(field, "This must be a string or an array of blocks.")
	}
	for raw := range chat.Elements(value) {
		if raw[0] != '{' || typeOf(raw) == "" {
			return nil, wrong(fieldAt(field, len(blocks)), `A block must be an object with a type, such as {"type": "text", "text": "…"}.`)
		}
		blocks = append(blocks, raw)
	}
	return blocks, nil
}

// textBlock makes a block of a text in JSON.
func textBlock(quoted json.RawMessage) json.RawMessage {
	return append(append(json.RawMessage(`{"type":"text","text":`), quoted...), '}')
}

// isObject tells whether bytes are a JSON object. It may have characters that can't be
// stored: storable takes them out of what is.
func isObject(raw []byte) bool {
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(raw)
}

func wrong(field, format string, args ...any) error {
	return fault.New(fault.Invalid, "invalid_parameter", field, format, args...)
}
