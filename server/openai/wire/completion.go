package wire

import (
	"encoding/json"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
)

// A Completion is an answer in the form of chat completions, or a chunk of its stream.
type Completion struct {
	ID          string             `json:"id"`
	Object      string             `json:"object"`
	Created     int64              `json:"created"`
	Model       string             `json:"model"`
	ServiceTier string             `json:"service_tier"`
	Choices     []completionChoice `json:"choices"`
	Usage       any                `json:"usage,omitempty"` // completionUsage, or null
	Metadata    map[string]string  `json:"metadata,omitempty"`
}

type completionChoice struct {
	Index    int             `json:"index"`
	Message  *choiceMessage  `json:"message,omitempty"`
	Delta    *chunkDelta     `json:"delta,omitempty"` // of a chunk
	Logprobs json.RawMessage `json:"logprobs"`
	Finish   *string         `json:"finish_reason"`
}

type choiceMessage struct {
	Role        string          `json:"role"`
	Content     *string         `json:"content"`
	Refusal     *string         `json:"refusal"`
	Reasoning   string          `json:"reasoning_content,omitempty"`
	Calls       json.RawMessage `json:"tool_calls,omitempty"`
	Annotations []struct{}      `json:"annotations"`
}

type chunkDelta struct {
	Role      string            `json:"role,omitempty"`
	Content   *string           `json:"content,omitempty"`
	Refusal   string            `json:"refusal,omitempty"`
	Reasoning string            `json:"reasoning_content,omitempty"`
	Calls     []json.RawMessage `json:"tool_calls,omitempty"`
}

// completionUsage counts the tokens of a chat completion.
type completionUsage struct {
	Prompt           int          `json:"prompt_tokens"`
	PromptDetail     inputDetail  `json:"prompt_tokens_details"`
	Completion       int          `json:"completion_tokens"`
	CompletionDetail outputDetail `json:"completion_tokens_details"`
	Total            int          `json:"total_tokens"`
}

func (u *Usage) completion() completionUsage {
	if u == nil {
		return completionUsage{}
	}
	return completionUsage{u.Input, u.InputDetail, u.Output, u.OutputDetail, u.Total}
}

var null = json.RawMessage("null")

// Completion returns the chat completion of a stored answer. An answer that
// failed is an error, which NewError makes.
func (t Turn) Completion(end End) Completion {
	message := choiceMessage{Role: "assistant", Annotations: []struct{}{}}
	if m := end.Message; m != nil {
		d := deltaOf(m)
		if d.Text != "" {
			message.Content = &d.Text
		}
		if d.Refusal != "" {
			message.Refusal = &d.Refusal
		}
		message.Reasoning = d.Reasoning
		if len(d.Calls) > 0 {
			message.Calls = chat.MustMarshal(d.Calls) // with all members, which some providers want back
		}
	}
	reason := finish(end)
	c := t.completion("chat.completion", end.Usage.completion(), completionChoice{Message: &message, Finish: &reason})
	c.Metadata = t.Echo.Metadata
	return c
}

func (t Turn) completion(object string, usage any, choices ...completionChoice) Completion {
	return Completion{
		ID: t.Node.CompletionID(), Object: object, Created: t.CreatedAt.Unix(), Model: t.Echo.Model,
		Choices: append([]completionChoice{}, choices...), Usage: usage, ServiceTier: t.Echo.ServiceTier,
	}
}

// finish is the reason why an answer ended, in one of the words that clients
// know.
func finish(end End) string {
	calls := end.Message != nil && len(end.Message.Calls) > 0
	switch {
	case end.FinishReason == "length" || end.FinishReason == "content_filter":
		return end.FinishReason
	case calls:
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

func (c *Chunks) send(dst []byte, usage any, choices ...completionChoice) []byte {
	if usage == nil && c.usage {
		usage = null
	}
	return sdk.AppendEvent(dst, "", chat.MustMarshal(c.turn.completion("chat.completion.chunk", usage, choices...)))
}

func (c *Chunks) delta(dst []byte, d chunkDelta) []byte {
	return c.send(dst, nil, completionChoice{Delta: &d})
}

// Begin appends the beginning of the stream to dst.
func (c *Chunks) Begin(dst []byte) []byte {
	return c.delta(dst, chunkDelta{Role: "assistant", Content: new(string)})
}

// Add appends the next piece of the answer to dst.
func (c *Chunks) Add(dst []byte, d sdk.Delta) []byte {
	c.sent = true
	if d.Reasoning != "" {
		dst = c.delta(dst, chunkDelta{Reasoning: d.Reasoning})
	}
	if d.Text != "" {
		dst = c.delta(dst, chunkDelta{Content: &d.Text})
	}
	if d.Refusal != "" {
		dst = c.delta(dst, chunkDelta{Refusal: d.Refusal})
	}
	for i, raw := range d.Calls { // in a chunk each: some clients read the first entry alone
		if chat.MemberOf(raw, "index") == nil { // of a stored answer
			raw = chat.AppendObject(nil, append([]chat.Member{{Name: "index", Value: chat.MustMarshal(i)}}, chat.Members(raw)...))
		}
		dst = c.delta(dst, chunkDelta{Calls: []json.RawMessage{raw}})
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
	reason := finish(end)
	dst = c.send(dst, nil, completionChoice{Delta: &chunkDelta{}, Finish: &reason})
	if c.usage {
		dst = c.send(dst, end.Usage.completion())
	}
	return sdk.AppendEvent(dst, "", done)
}

// Break implements Writer.
func (c *Chunks) Break(dst []byte, why ErrorBody) []byte { return sdk.AppendEvent(dst, "", why.JSON()) }
