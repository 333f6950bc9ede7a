package wire

import (
	"encoding/json"

	"github.com/coppice-chat/coppice/chat"
)

// An Answer is what a model of chat completions answered.
type Answer struct {
	ID           string // such as msg_01
	Model        string // that the request names
	Message      *chat.Message
	Reasoning    string
	Blocks       []json.RawMessage // of an answer that Anthropic gave; they stand for Message and Reasoning. nil for none
	FinishReason string            // of chat completions; "" for none
	Usage        Usage
}

// Usage counts tokens. The first three together are the prompt's.
type Usage struct {
	Input         int `json:"input_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
	Output        int `json:"output_tokens"`
}

// A message is an answer on the wire. All of its members are there, because some
// clients demand them.
type message struct {
	ID           string            `json:"id"`
	Type         string            `json:"type"`
	Role         string            `json:"role"`
	Model        string            `json:"model"`
	Content      []json.RawMessage `json:"content"`
	StopReason   *string           `json:"stop_reason"`
	StopSequence *string           `json:"stop_sequence"`
	Usage        Usage             `json:"usage"`
}

// Encode writes the answer as a whole message.
func (a Answer) Encode() json.RawMessage {
	m := a.begin()
	m.Content = append(m.Content, a.blocks()...)
	reason := a.stopReason()
	m.StopReason, m.Usage = &reason, a.Usage
	return chat.MustMarshal(m)
}

// blocks are what the answer says.
func (a Answer) blocks() (blocks []json.RawMessage) {
	if a.Blocks != nil || a.Message == nil {
		return a.Blocks
	}
	if a.Reasoning != "" {
		blocks = append(blocks, thinkingBlock(a.Reasoning))
	}
	if text := answerText(a.Message); text != "" {
		blocks = append(blocks, textBlock(quote(text)))
	}
	for _, c := range a.Message.Calls {
		blocks = append(blocks, callBlock(c, inputOf(c)))
	}
	return blocks
}

// begin is the message before anything was said.
func (a Answer) begin() message {
	return message{ID: a.ID, Type: "message", Role: "assistant", Model: a.Model, Content: []json.RawMessage{}}
}

// answerText is the text of an answer, or of its refusal.
func answerText(m *chat.Message) string {
	if m.Refusal != nil && *m.Refusal != "" {
		return m.Text() + *m.Refusal
	}
	return m.Text()
}

// stopReason is Anthropic's word for why the answer ended.
func (a Answer) stopReason() string {
	switch {
	case a.FinishReason == "length":
		return "max_tokens"
	case a.FinishReason == "content_filter", a.Message != nil && a.Message.Refusal != nil && *a.Message.Refusal != "":
		return "refusal"
	case a.Message != nil && len(a.Message.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// thinkingBlock is a block of reasoning. No model signed it, so its signature is empty.
func thinkingBlock(text string) json.RawMessage {
	return object(is("type", quote("thinking")), is("thinking", quote(text)), is("signature", quote("")))
}

func callBlock(c chat.Call, input json.RawMessage) json.RawMessage {
	return object(is("type", quote("tool_use")), is("id", quote(c.ID)), is("name", quote(c.Name)), is("input", input))
}

// inputOf is what a tool is called with. A model may have written no JSON object: then
// its text stands in one, and the tool says what is wrong.
func inputOf(c chat.Call) json.RawMessage {
	input := json.RawMessage(c.Arguments)
	if c.Custom { // of a tool that Anthropic's API doesn't have
		return object(is("input", quote(c.Arguments)))
	}
	if isObject(input) {
		return input
	}
	if c.Arguments == "" {
		return json.RawMessage("{}")
	}
	return object(is("arguments", quote(c.Arguments)))
}

// EncodeCount writes the number of a request's tokens.
func EncodeCount(tokens int) json.RawMessage {
	return chat.MustMarshal(map[string]int{"input_tokens": tokens})
}

// EncodeModels writes a list of models, whole.
func EncodeModels(names []string, created string) json.RawMessage {
	models := make([]json.RawMessage, len(names))
	for i, name := range names {
		models[i] = EncodeModel(name, created)
	}
	list := map[string]any{"data": models, "has_more": false, "first_id": nil, "last_id": nil}
	if n := len(names); n > 0 {
		list["first_id"], list["last_id"] = names[0], names[n-1]
	}
	return chat.MustMarshal(list)
}

// EncodeModel writes a model. created is a time by RFC 3339.
func EncodeModel(name, created string) json.RawMessage {
	return chat.MustMarshal(map[string]any{"type": "model", "id": name, "display_name": name, "created_at": created})
}
