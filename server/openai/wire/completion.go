package wire

import (
	"encoding/json"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
)

var null = json.RawMessage("null")

// Completion returns the chat completion of a stored answer. An answer that
// failed is an error, which NewError makes.
func (t Turn) Completion(end End) json.RawMessage {
	var d sdk.Delta
	if end.Message != nil {
		d = deltaOf(end.Message)
	}
	message := sdk.JSON("role", "assistant", "content", orNull(d.Text), "refusal", orNull(d.Refusal), "reasoning_content?", d.Reasoning,
		"tool_calls?", d.Calls, "annotations", noElements) // the calls with all members, which some providers want back
	return t.completion("chat.completion", []json.RawMessage{oneChoice("message", message, finish(end))}, end.Usage.completion(), "metadata?", t.Echo.Metadata)
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// completion is an answer in the form of chat completions, or a chunk of its stream.
func (t Turn) completion(object string, choices []json.RawMessage, usage json.RawMessage, more ...any) json.RawMessage {
	return sdk.JSON(append([]any{"id", t.Node.CompletionID(), "object", object, "created", t.CreatedAt.Unix(), "model", t.Echo.Model,
		"service_tier", t.Echo.ServiceTier, "choices", chat.AppendArray(nil, choices), "usage?", usage}, more...)...)
}

func oneChoice(name string, said json.RawMessage, finish string) json.RawMessage {
	return sdk.JSON("index", 0, name, said, "logprobs", nil, "finish_reason", orNull(finish))
}

// finish is the reason why an answer ended, in one of the words that clients
// know.
func finish(end End) string {
	switch {
	case end.FinishReason == "length" || end.FinishReason == "content_filter":
		return end.FinishReason
	case end.Message != nil && len(end.Message.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// Chunks writes an answer as the chunks of a chat completion.
type Chunks struct {
	turn  Turn
	usage bool // a chunk with the usage comes last
	sent  bool // a piece of the answer was sent
}

// NewChunks returns Chunks for an answer.
func NewChunks(turn Turn, usage bool) *Chunks { return &Chunks{turn: turn, usage: usage} }

func (c *Chunks) send(dst []byte, usage json.RawMessage, choices ...json.RawMessage) []byte {
	if usage == nil && c.usage {
		usage = null
	}
	return sdk.AppendEvent(dst, "", c.turn.completion("chat.completion.chunk", choices, usage))
}

func (c *Chunks) delta(dst []byte, finish string, members ...any) []byte {
	return c.send(dst, nil, oneChoice("delta", sdk.JSON(members...), finish))
}

// Begin appends the beginning of the stream to dst.
func (c *Chunks) Begin(dst []byte) []byte {
	return c.delta(dst, "", "role", "assistant", "content", "")
}

// Compact implements Writer: chat completions ask for none.
func (c *Chunks) Compact(dst []byte, _ Compaction) []byte { return dst }

// Add appends the next piece of the answer to dst.
func (c *Chunks) Add(dst []byte, d sdk.Delta) []byte {
	c.sent = true
	if d.Reasoning != "" {
		dst = c.delta(dst, "", "reasoning_content", d.Reasoning)
	}
	if d.Text != "" {
		dst = c.delta(dst, "", "content", d.Text)
	}
	if d.Refusal != "" {
		dst = c.delta(dst, "", "refusal", d.Refusal)
	}
	for i, raw := range d.Calls { // in a chunk each: some clients read the first entry alone
		if chat.MemberOf(raw, "index") == nil { // of a stored answer
			raw = chat.AppendObject(nil, append([]chat.Member{{Name: "index", Value: chat.MustMarshal(i)}}, chat.Members(raw)...))
		}
		dst = c.delta(dst, "", "tool_calls", []json.RawMessage{raw})
	}
	return dst
}

// End appends the end of the stream to dst. If no piece of the answer was sent,
// it appends the stored answer first.
func (c *Chunks) End(dst []byte, end End) []byte {
	if end.Status == Failed {
		return c.Break(dst, end.Error)
	}
	if !c.sent && end.Message != nil {
		dst = c.Add(dst, deltaOf(end.Message))
	}
	if dst = c.delta(dst, finish(end)); c.usage {
		dst = c.send(dst, end.Usage.completion())
	}
	return sdk.AppendEvent(dst, "", done)
}

// Break implements Writer.
func (c *Chunks) Break(dst []byte, why ErrorBody) []byte { return sdk.AppendEvent(dst, "", why.JSON()) }
