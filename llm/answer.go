package llm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/openai/openai-go/packages/ssestream"

	"github.com/coppice-chat/coppice/chat"
)

var errTooMuch = errors.New("more bytes than an answer may have")

// A chunk is a chat completion, or a chunk of one: what is told apart only by
// whether the choice has a message or a delta. The SDK's own types would lose
// members of tool calls that providers want back.
type chunk struct {
	Error   json.RawMessage
	Model   string
	Choices []struct {
		Index        int
		Message      *piece
		Delta        *piece
		FinishReason string `json:"finish_reason"`
	}
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		PromptDetails    struct {
			CachedTokens int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			ReasoningTokens int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
}

// A piece is a message, or a piece of one. Reasoning has either name, depending
// on the server; where it has both, they say the same.
type piece struct {
	Content          json.RawMessage
	Refusal          string
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage
	ToolCalls        json.RawMessage `json:"tool_calls"`
}

// An answer is put together from its pieces.
type answer struct {
	limit int                 // bytes that the text and calls may have
	each  func(d Delta) error // of a stream; may be nil

	size             int
	reasoning        strings.Builder
	content, refusal strings.Builder
	split            splitter // of reasoning that stands in the content
	calls            []*toolCall
	custom           map[string]bool // names of custom tools that were offered as functions
	finish, model    string
	prompt, output   int // tokens
	cached, reasoned int // of these
}

// readWhole reads a chat completion.
func readWhole(body io.Reader, a *answer) error {
	raw, err := io.ReadAll(io.LimitReader(body, int64(a.limit)+1))
	switch {
	case err != nil:
		return err
	case len(raw) > a.limit:
		return errTooMuch
	case len(bytes.TrimSpace(raw)) == 0:
		return failed(ErrBadResponse, "the server sent nothing")
	}
	return a.add(raw, true)
}

// readEvents reads a stream of chunks. One that ends without a finish reason
// and without "[DONE]" was cut off. After a finish reason only the count of
// tokens comes, so a stream that breaks there is whole all the same, and one
// that stays open is left by calling stop, which ends the reading.
func readEvents(ctx context.Context, stop func(), events ssestream.Decoder, a *answer) error {
	finished := false
	for events.Next() {
		if err := ctx.Err(); err != nil {
			return err // chunks may still be buffered
		}
		data := bytes.TrimSpace(events.Event().Data)
		if len(data) == 0 {
			continue // a comment, or an event that has a name only
		}
		if bytes.Equal(data, []byte("[DONE]")) {
			return nil
		}
		if err := a.add(data, false); err != nil {
			return err
		}
		if a.finish != "" && !finished {
			finished = true
			defer time.AfterFunc(finishGrace, stop).Stop()
		}
	}
	err := events.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return errTooMuch
	case errors.Is(err, errTooMuch):
		return err
	case a.finish != "":
		return nil
	case err != nil:
		return err
	}
	return io.ErrUnexpectedEOF
}

// add takes in a completion or chunk.
func (a *answer) add(raw []byte, whole bool) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return failed(ErrBadResponse, "the server sent broken JSON, or no chat completion; "+checkBaseURL)
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if c.Usage != nil {
		a.prompt, a.output = max(c.Usage.PromptTokens, 0), max(c.Usage.CompletionTokens, 0)
		a.cached, a.reasoned = max(c.Usage.PromptDetails.CachedTokens, 0), max(c.Usage.CompletionDetails.ReasoningTokens, 0)
	}
	if len(c.Error) > 0 && !bytes.Equal(c.Error, []byte("null")) {
		return streamed(parseFault(raw))
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // only one was asked for
		}
		p := choice.Delta
		if p == nil {
			p = choice.Message
		}
		if p != nil {
			if err := a.addPiece(p, whole); err != nil {
				return err
			}
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
	}
	return nil
}

func (a *answer) addPiece(p *piece, whole bool) error {
	reasoning, content, err := contentText(p.Content)
	if err != nil {
		return err
	}
	reasoning = stringOf(p.ReasoningContent, p.Reasoning) + reasoning
	var held string
	if reasoning != "" && a.split.at == beforeAll {
		_, held = a.split.rest() // the server tells the two apart itself
	}
	inline, content := a.split.add(content)
	d := Delta{Reasoning: withoutNUL(reasoning + inline), Content: withoutNUL(held + content), Refusal: withoutNUL(p.Refusal)}
	if len(p.ToolCalls) > 0 && !slices.Contains([]string{"null", "[]"}, string(p.ToolCalls)) {
		if d.ToolCalls, err = a.addCalls(p.ToolCalls, whole); err != nil {
			return err
		}
	}
	return a.take(d)
}

// take takes in a piece that was read.
func (a *answer) take(d Delta) error {
	if a.size += len(d.Reasoning) + len(d.Content) + len(d.Refusal); a.size > a.limit {
		return errTooMuch
	}
	a.reasoning.WriteString(d.Reasoning)
	a.content.WriteString(d.Content)
	a.refusal.WriteString(d.Refusal)
	if a.each == nil || d.Reasoning == "" && d.Content == "" && d.Refusal == "" && d.ToolCalls == nil {
		return nil
	}
	return a.each(d)
}

// finished takes in what was held at the end of the content and of calls.
func (a *answer) finished() error {
	for i, call := range a.calls {
		if call.text == nil {
			continue
		}
		if more := call.text.end(); more != "" {
			piece, _ := chat.Marshal([]any{map[string]any{"index": i, "custom": map[string]string{"input": more}}}) // which always encodes
			if err := a.take(Delta{ToolCalls: piece}); err != nil {
				return err
			}
		}
	}
	reasoning, content := a.split.rest()
	return a.take(Delta{Reasoning: withoutNUL(reasoning), Content: withoutNUL(content)})
}

// contentText is the text of a message's content, and the reasoning in it. Most
// send a string; an array of parts has both, in parts of the types text and
// thinking.
func contentText(raw json.RawMessage) (reasoning, content string, err error) {
	if len(raw) == 0 || raw[0] == 'n' {
		return "", "", nil
	}
	if raw[0] == '"' {
		return "", text(raw), nil
	}
	var parts []struct {
		Type, Text string
		Thinking   json.RawMessage // a string, or parts again
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", "", failed(ErrBadResponse, "the content is neither text nor a list of parts")
	}
	var thought, said strings.Builder
	for _, part := range parts {
		switch part.Type {
		case "text":
			said.WriteString(part.Text)
		case "thinking":
			thought.WriteString(stringOf(part.Thinking))
			var within []struct{ Text string }
			if json.Unmarshal(part.Thinking, &within) == nil {
				for _, w := range within {
					thought.WriteString(w.Text)
				}
			}
		}
	}
	return thought.String(), said.String(), nil
}

// stringOf is the text of the first of these that is a string that isn't empty.
func stringOf(values ...json.RawMessage) string {
	for _, raw := range values {
		if len(raw) > len(`""`) && raw[0] == '"' {
			return text(raw)
		}
	}
	return ""
}

func withoutNUL(s string) string { return strings.ReplaceAll(s, "\x00", "") }

// check tells what is wrong with an answer that was read to its end.
func (a *answer) check() error {
	if a.content.Len() == 0 && a.refusal.Len() == 0 && len(a.calls) == 0 {
		what := "the answer is empty"
		if a.reasoning.Len() > 0 {
			what = "the model thought, and the answer is empty"
		}
		if !isCode(a.finish) {
			return failed(ErrBadResponse, "%s", what)
		}
		return failed(ErrBadResponse, "%s, and its finish reason is %s", what, a.finish)
	}
	for _, call := range a.calls {
		if err := call.check(); err != nil {
			return err
		}
	}
	return nil
}

// response is the answer as it stands; whole says that nothing is missing.
func (a *answer) response(model string, whole bool) Response {
	r := Response{
		Text: a.content.String(), Reasoning: a.reasoning.String(), Refusal: a.refusal.String(), FinishReason: a.finish, Model: a.model,
		PromptTokens: a.prompt, CompletionTokens: a.output, CachedTokens: a.cached, ReasoningTokens: a.reasoned,
	}
	if r.Model == "" {
		r.Model = model
	}
	calls := a.calls
	if !whole {
		calls = nil
	}
	if r.Text != "" || r.Refusal != "" || len(calls) > 0 {
		r.Message = message(r.Text, r.Refusal, calls)
	}
	return r
}

// message is an assistant's message object.
func message(content, refusal string, calls []*toolCall) json.RawMessage {
	m := struct {
		Role      string      `json:"role"`
		Content   *string     `json:"content"`
		Refusal   string      `json:"refusal,omitempty"`
		ToolCalls []*toolCall `json:"tool_calls,omitempty"`
	}{Role: "assistant", Refusal: refusal, ToolCalls: calls}
	if content != "" {
		m.Content = &content
	}
	raw, _ := chat.Marshal(m) // strings and checked JSON always encode
	return raw
}
