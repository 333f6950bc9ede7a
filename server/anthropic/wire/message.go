package wire

import (
	"encoding/json"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
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

// Encode writes the answer as a whole message.
func (a Answer) Encode() json.RawMessage { return a.encode(a.blocks(), a.stopReason(), a.Usage) }

// encode writes the answer with what is known of its end. All members are there, because
// some clients demand them.
func (a Answer) encode(content []json.RawMessage, reason any, usage Usage) json.RawMessage {
	return sdk.JSON("id", a.ID, "type", "message", "role", "assistant", "model", a.Model, "content", chat.AppendArray(nil, content),
		"stop_reason", reason, "stop_sequence", nil, "usage", usage)
}

// blocks are what the answer says.
func (a Answer) blocks() (blocks []json.RawMessage) {
	if a.Blocks != nil || a.Message == nil {
		return a.Blocks
	}
	if a.Reasoning != "" {
		blocks = append(blocks, thinkingBlock(a.Reasoning))
	}
	return append(blocks, saidBlocks(answerText(a.Message), a.Message.Calls)...)
}

// saidBlocks are a text, if there is one, and calls.
func saidBlocks(text string, calls []chat.Call) (blocks []json.RawMessage) {
	if text != "" {
		blocks = append(blocks, textBlock(text))
	}
	for _, c := range calls {
		blocks = append(blocks, callBlock(c, inputOf(c)))
	}
	return blocks
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
	return sdk.JSON("type", "thinking", "thinking", text, "signature", "")
}

func callBlock(c chat.Call, input json.RawMessage) json.RawMessage {
	return sdk.JSON("type", "tool_use", "id", c.ID, "name", c.Name, "input", input)
}

// inputOf is what a tool is called with. A model may have written no JSON object: then
// its text stands in one, and the tool says what is wrong.
func inputOf(c chat.Call) json.RawMessage {
	input := json.RawMessage(c.Arguments)
	if c.Custom { // of a tool that Anthropic's API doesn't have
		return sdk.JSON("input", c.Arguments)
	}
	if isObject(input) {
		return input
	}
	if c.Arguments == "" {
		return json.RawMessage("{}")
	}
	return sdk.JSON("arguments", c.Arguments)
}

// EncodeModels writes a list of models, whole.
func EncodeModels(names []string, created string) json.RawMessage {
	models := make([]json.RawMessage, len(names))
	var first, last any
	for i, name := range names {
		models[i] = EncodeModel(name, created)
		first, last = names[0], name
	}
	return sdk.JSON("data", models, "has_more", false, "first_id", first, "last_id", last)
}

// EncodeModel writes a model. created is a time by RFC 3339.
func EncodeModel(name, created string) json.RawMessage {
	return sdk.JSON("type", "model", "id", name, "display_name", name, "created_at", created)
}
