package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// An exchange is one request and the answer to it.
type exchange struct {
	w      http.ResponseWriter
	req    Request
	pace   time.Duration   // before the headers, and before each piece after the first
	closed <-chan struct{} // the server ends
	gone   <-chan struct{} // the client went away
	broken bool            // a write failed, which may be known before gone is
}

// left tells whether the client went away.
func (x *exchange) left() bool {
	select {
	case <-x.gone:
		return true
	default:
		return x.broken
	}
}

// wait sleeps until d is over, or forever if d is 0; false means that nobody
// waits for the answer any more.
func (x *exchange) wait(d time.Duration) bool {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return true
	case <-x.gone:
	case <-x.closed:
	}
	return false
}

// hang waits until nobody waits for the answer.
func (x *exchange) hang() { x.wait(0) }

// cut breaks the connection.
func (x *exchange) cut() { panic(http.ErrAbortHandler) }

// start sends the headers.
func (x *exchange) start(contentType string) {
	x.w.Header().Set("Content-Type", contentType)
	x.w.WriteHeader(http.StatusOK)
	x.flush()
}

// write sends a part of the body at once; false means that nobody reads it.
func (x *exchange) write(data string) bool {
	if _, err := x.w.Write([]byte(data)); err != nil {
		x.broken = true
		return false
	}
	x.flush()
	return true
}

func (x *exchange) flush() { x.w.(http.Flusher).Flush() }

// A reply is an answer of the model's.
type reply struct {
	reasoning    string
	pieces       []string // of the content
	refusal      string
	calls        []ToolCall
	finishReason string
}

func textReply(pieces ...string) reply { return reply{pieces: pieces, finishReason: "stop"} }

// whole is the reply as a chat completion.
func (r reply) whole(model string) string {
	text := strings.Join(r.pieces, "")
	return encode(map[string]any{
		"id": "chatcmpl-fake", "object": "chat.completion", "created": 1700000000, "model": model + "-fake",
		"choices": []any{map[string]any{
			"index": 0, "finish_reason": r.finishReason, "logprobs": nil,
			"message": assistant(text, r.reasoning, r.refusal, r.calls),
		}},
		"usage": r.usage(),
	})
}

// usage counts four bytes as a token, so that a test can tell what to expect.
func (r reply) usage() map[string]any {
	output := len(r.reasoning+strings.Join(r.pieces, ""))/4 + 1
	usage := map[string]any{"prompt_tokens": promptTokens, "completion_tokens": output, "total_tokens": promptTokens + output}
	if r.reasoning != "" {
		usage["completion_tokens_details"] = map[string]int{"reasoning_tokens": len(r.reasoning) / 4}
	}
	return usage
}

// promptTokens is what every prompt is said to take.
const promptTokens = 7

// events are the reply as a stream's events: the role, the pieces, the finish
// reason, the usage, the end.
func (r reply) events(model string) []string {
	event := func(choices []any, usage any) string {
		return "data: " + encode(map[string]any{
			"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1700000000, "model": model + "-fake",
			"choices": choices, "usage": usage,
		}) + "\n\n"
	}
	delta := func(delta map[string]any, finish any) string {
		return event([]any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}, nil)
	}
	out := []string{delta(map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil)}
	for _, piece := range split(r.reasoning, 12) {
		out = append(out, delta(map[string]any{"content": nil, "reasoning_content": piece}, nil))
	}
	for _, piece := range r.pieces {
		out = append(out, delta(map[string]any{"content": piece}, nil))
	}
	for _, piece := range split(r.refusal, 8) {
		out = append(out, delta(map[string]any{"refusal": piece}, nil))
	}
	for i, call := range r.calls {
		out = append(out, delta(map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": call.ID, "type": "function", "function": map[string]any{"name": call.Name, "arguments": ""},
		}}}, nil))
		for _, piece := range split(call.Arguments, 5) {
			out = append(out, delta(map[string]any{"tool_calls": []any{map[string]any{
				"index": i, "function": map[string]any{"arguments": piece},
			}}}, nil))
		}
	}
	return append(out, delta(map[string]any{}, r.finishReason), event([]any{}, r.usage()), "data: [DONE]\n\n")
}

// assistant is an assistant's message.
func assistant(content, reasoning, refusal string, calls []ToolCall) json.RawMessage {
	m := map[string]any{"role": "assistant", "content": content}
	if reasoning != "" {
		m["reasoning_content"] = reasoning
	}
	if content == "" && (refusal != "" || calls != nil) {
		m["content"] = nil
	}
	if refusal != "" {
		m["refusal"] = refusal
	}
	var list []any
	for _, call := range calls {
		list = append(list, map[string]any{"id": call.ID, "type": "function", "function": map[string]any{"name": call.Name, "arguments": call.Arguments}})
	}
	if list != nil {
		m["tool_calls"] = list
	}
	return json.RawMessage(encode(m))
}

// split cuts text into pieces of about n bytes, between characters.
func split(text string, n int) (pieces []string) {
	for len(text) > n {
		end := n
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		pieces, text = append(pieces, text[:end]), text[end:]
	}
	if text != "" {
		pieces = append(pieces, text)
	}
	return pieces
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("llmtest: %v", err)) // only values made here
	}
	return string(b)
}
