// Package llm talks to language models: one small interface, a client for
// every server that speaks OpenAI's chat completions, and a model that needs
// no network.
//
// It is not a prompt library, and it keeps no history: a request holds whole
// messages, and they go out byte for byte. It retries nothing, because a
// caller that tries several models must be the only one who counts attempts.
// It reads no environment and writes no log.
//
// Package llm/llmtest has the fakes for tests.
package llm

import (
	"context"
	"encoding/json"
)

// A Model answers lists of messages. Models are safe for concurrent use.
//
// A call lasts until the model is done or ctx is, and nothing else bounds it:
// give every call a context with a deadline. Errors are *Error, but for those
// of each. A Response beside an error holds what is known all the same: the
// text that came, and what it cost.
type Model interface {
	// Name is the model's name as it was configured, such as "gpt-4o-mini".
	Name() string

	// Complete returns the whole answer.
	Complete(ctx context.Context, req Request) (Response, error)

	// Stream is Complete that calls each for every piece of the answer, in
	// order and from the caller's goroutine. An error of each ends the call
	// and is returned. The pieces' content adds up to Response.Text.
	Stream(ctx context.Context, req Request, each func(Delta) error) (Response, error)
}

// A Request asks for an answer to a list of messages.
type Request struct {
	// Messages are chat-completions message objects. They are sent byte for
	// byte, so that a provider's prompt cache sees the prefix it saw before.
	Messages []json.RawMessage

	// Temperature is nil for the model's default. It isn't sent to models
	// that refuse one; see Family.
	Temperature *float64

	// MaxOutputTokens bounds the answer, hidden reasoning included; 0 leaves
	// it to the model.
	MaxOutputTokens int

	// Options are further settings of the answer.
	Options Options

	// Extra are other members of the request object, such as tools and
	// tool_choice. Those that the other fields stand for, and n, are refused.
	Extra map[string]json.RawMessage
}

// A Response is an answer.
type Response struct {
	// Message is the assistant's message object, as it can be stored and sent
	// again: role and content, and tool_calls or refusal if there are any. A
	// tool call keeps the members it came with. NUL characters, which
	// databases refuse, are gone. Beside an error it holds the text that came
	// until then and no tool call, because half a call can't be answered; it
	// is nil if no text came.
	Message json.RawMessage

	Text      string // the message's content; "" for none
	Reasoning string // what the model thought before; "" for none. It is not in the message: models don't want it back, but see Family
	Refusal   string // what the model said instead of answering; "" for none

	// FinishReason is the provider's word: "stop", "tool_calls", "length" if
	// the answer is cut off, "content_filter"; "" if it gave none.
	FinishReason string

	Model string // as the provider names it, or else as configured

	// Tokens as the provider counted them; 0 if it didn't say.
	PromptTokens, CompletionTokens int
	CachedTokens                   int // of PromptTokens, those that its prompt cache had
	ReasoningTokens                int // of CompletionTokens, those that were hidden reasoning
}

// A Delta is a piece of an answer on its way.
type Delta struct {
	Reasoning string // a piece of the reasoning; "" for none
	Content   string // a piece of the content; "" for none
	Refusal   string // a piece of the refusal; "" for none

	// ToolCalls is the chunk's tool_calls array as it came, pieces with their
	// index; nil for none. Response.Message has the calls put together.
	ToolCalls json.RawMessage
}
