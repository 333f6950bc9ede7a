// Package chat is the chat-completions message as a value. A message is taken
// apart once, and keeps the bytes as they came beside its fields.
//
// Parse is strict, and its errors name the path of what is wrong. It is for what
// a client sends. Read takes what it can and never fails. It is for messages that
// are stored already, or come from other programs.
//
// The package knows no tree, no storage and no model. It counts no tokens and
// sends nothing.
package chat

import (
	"encoding/json"
	"strings"
)

// A Role says whose message it is.
type Role string

// The roles of the chat-completions API.
const (
	System    Role = "system"
	Developer Role = "developer"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// A Message is a chat-completions message. Its slices refer to the bytes that it
// was read from.
type Message struct {
	Raw json.RawMessage // as it came

	Role    Role
	Content json.RawMessage // as it came; nil where there is none
	Plain   bool            // the content is one string, which is the only part
	Parts   []Part          // of the content, in their order; none of an absent or empty one
	Calls   []Call          // tool calls of an assistant's message

	CallID    *string // tool_call_id, the call that a tool's message answers; nil for none
	Name      *string // of the speaker, among those of one role; nil for none
	Refusal   *string // said by an assistant in place of content; nil for none
	Reasoning string  // reasoning_content, or reasoning, where a model showed it

	// Others are the members that have no field above, in their order.
	Others []Member

	hasCalls bool    // tool_calls is there and not null
	checked  bool    // Parse finds nothing wrong
	only     [1]Part // of a Plain message, so that Parts takes no memory of its own
}

// A Part is one part of a content.
type Part struct {
	Type string          // such as text, refusal, image_url, input_audio or file
	Text string          // of a text or refusal part
	Raw  json.RawMessage // as it came; nil of a Plain message's only part
}

// A Call is a tool call.
type Call struct {
	ID        string
	Name      string // of the function or custom tool
	Arguments string // JSON as the model wrote it, or a custom tool's input
	Custom    bool   // it calls a custom tool
}

// A Member is a member of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Text returns a message that says a text.
func Text(role Role, text string) *Message {
	return (&Message{Role: role, Parts: []Part{TextPart(text)}}).Encoded()
}

// IsText reports whether the part is text or a refusal. Its Text is then what was
// said.
func (p Part) IsText() bool { return p.Type == "text" || p.Type == "refusal" }

// Known reports whether the part is of a type that the chat-completions API has, or
// that servers compatible to it add. A part of another API, such as Anthropic's
// tool_use, is refused by models.
func (p Part) Known() bool {
	switch p.Type {
	case "text", "refusal", "image_url", "input_audio", "file", "video_url", "audio_url":
		return true
	}
	return false
}

// Text returns the text of the content, with a line end between its parts.
func (m *Message) Text() string {
	if len(m.Parts) == 1 {
		return m.Parts[0].Text // as most messages have it, without a copy
	}
	var texts []string
	for _, p := range m.Parts {
		if p.IsText() {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Answers returns the id of the call that the message answers, or "".
func (m *Message) Answers() string {
	if m.CallID == nil {
		return ""
	}
	return *m.CallID
}

// Other returns the value of a member that has no field, or nil.
func (m *Message) Other(name string) json.RawMessage {
	for i := len(m.Others) - 1; i >= 0; i-- { // of several the last, as encoding/json has it
		if m.Others[i].Name == name {
			return m.Others[i].Value
		}
	}
	return nil
}
