// Package llm talks to language models. It has one small interface, a client
// for every server that speaks OpenAI's chat completions, and a model that
// needs no network.
//
// It is not a prompt library, and it keeps no history: a request holds whole
// messages, and they go out byte for byte. It retries nothing, because only the
// caller that tries several models may count attempts. It reads no environment
// and writes no log.
//
// Package llm/llmtest has the fakes for tests.
package llm

import (
	"context"
	"encoding/json"
)

// A Model answers lists of messages. Models are safe for concurrent use.
//
// A call lasts until the model is done or ctx ends. Nothing else bounds it, so
// give every call a context with a deadline. Errors are *Error, except the
// errors that each returns. A Response beside an error holds what is known: the
// text that came, and its cost in tokens.
type Model interface {
	// Name is the model's name as it was configured, such as "gpt-4o-mini".
	Name() string

	// Complete returns the whole answer.
	Complete(ctx context.Context, req Request) (Response, error)

	// Stream does what Complete does, and calls each for every piece of the
	// answer, in order and from the caller's goroutine. If each returns an
	// error, the call ends and returns it. The content of all pieces together
	// is Response.Text.
	Stream(ctx context.Context, req Request, each func(Delta) error) (Response, error)
}

// CallsTools reports whether a model can call tools. Every model can, except one
// with a method CallsTools() bool that says no, such as the offline model.
func CallsTools(m Model) bool {
	if w, ok := m.(*instrumented); ok {
		m = w.Model
	}
	says, ok := m.(interface{ CallsTools() bool })
	return !ok || says.CallsTools()
}

// A Request asks for an answer to a list of messages.
type Request struct {
	// Messages are chat-completions message objects. They are sent byte for
	// byte, so that a provider's prompt cache sees the prefix it saw before.
	Messages []json.RawMessage

	// Checked says that each of Messages is known to be a valid JSON object, as
	// package chat reads it. A client then doesn't parse them again.
	Checked bool

	// Temperature is nil for the model's default. It isn't sent to a model that
	// refuses a temperature: see Family.
	Temperature *float64

	// MaxOutputTokens bounds the answer, hidden reasoning included. With 0 the
	// model decides.
	MaxOutputTokens int

	// Options are further settings of the answer.
	Options Options

	// Extra are other members of the request object, such as tools and
	// tool_choice. Members that another field sets are refused, and so is n.
	Extra map[string]json.RawMessage
}

// A Response is an answer.
type Response struct {
	// Message is the assistant's message object, ready to be stored and sent
	// again. It has role and content, and tool_calls or refusal if there are
	// any. A tool call keeps the members that it came with. NUL characters are
	// left out, because databases refuse them.
	//
	// Beside an error, Message holds the text that came until then, and no tool
	// call, because half a call can't be answered. It is nil if no text came.
	Message json.RawMessage

	Text      string // the message's content; "" for none
	Reasoning string // the model's reasoning before the answer; "" for none. It is not in the message, because most models don't want it back: see Family
	Refusal   string // the text by which the model refused to answer; "" for none

	// Metadata are members of the stored answer's metadata: what a provider said that
	// a chat-completions message has no place for. They are bounded by the model.
	Metadata map[string]json.RawMessage

	// FinishReason is the provider's word: "stop", "tool_calls", "length" if
	// the answer is cut off, or "content_filter". It is "" if the provider gave
	// none.
	FinishReason string

	Model string // as the provider names it, or else as configured

	// PromptTokens and CompletionTokens are the provider's counts. They are 0
	// if the provider gave none.
	PromptTokens, CompletionTokens int
	CachedTokens                   int // the part of PromptTokens that came from the prompt cache
	ReasoningTokens                int // the part of CompletionTokens that was hidden reasoning
}

// A Delta is a piece of an answer that is still streaming.
type Delta struct {
	Reasoning string // a piece of the reasoning; "" for none
	Content   string // a piece of the content; "" for none
	Refusal   string // a piece of the refusal; "" for none

	// ToolCalls is the chunk's tool_calls array: pieces of calls, each with the
	// index of its call among those of Response.Message, which has the whole calls.
	// An index that the server left out or got wrong is put right; all else is as
	// it came. It is nil for none.
	ToolCalls json.RawMessage
}
