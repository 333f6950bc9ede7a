// Package llmtest has fakes of language models for tests. A Server is an HTTP
// server that speaks OpenAI's chat completions and has every fault that a real
// server has. A Model is a function that is an llm.Model. Server works with any
// OpenAI client, not only with package llm's.
//
// It is no simulation: a fake does what the test's script says, and nothing
// else. It is not linked into the program.
package llmtest

import (
	"strings"

	"github.com/coppice-chat/coppice/llm"
)

// Text returns n characters of text, the same text each time, for an answer of
// an exact length.
func Text(n int) string {
	const words = "The quick brown fox jumps over the lazy dog. "
	return strings.Repeat(words, n/len(words)+1)[:n]
}

// Response returns a finished answer with this text.
func Response(text string) llm.Response {
	return llm.Response{Message: assistant(text, "", "", nil), Text: text, FinishReason: "stop"}
}

// ResponseCalling returns an answer of tool calls, without text.
func ResponseCalling(calls ...ToolCall) llm.Response {
	return llm.Response{Message: assistant("", "", "", calls), FinishReason: "tool_calls"}
}
