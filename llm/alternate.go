package llm

import (
	"encoding/json"
	"regexp"
	"slices"

	"github.com/coppice-chat/coppice/chat"
)

// wantsTurns finds the refusal of a chat template that takes user and assistant by
// turns only. The templates of Mistral, Gemma and Llama 2 raise it, and vLLM,
// llama.cpp and LM Studio pass it on.
var wantsTurns = regexp.MustCompile(`(?i)\broles? (must|should) alternate`)

// byTurns joins neighbouring messages of one role, for a model that takes user and
// assistant by turns only. Results of tools stay apart, and so do messages that
// call tools, because a result answers one of them. A message that has no
// neighbour of its role keeps its bytes.
func byTurns(messages []json.RawMessage) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(messages))
	var last *chat.Message
	for _, raw := range messages {
		m := chat.Read(raw)
		if last == nil || m.Role != last.Role || m.Role == chat.Tool || len(m.Calls)+len(last.Calls) > 0 {
			out, last = append(out, raw), m
			continue
		}
		last = joined(last, m)
		out[len(out)-1] = last.Encode()
	}
	return out
}

// joined is a message that says what two say. Text becomes one part, with an empty
// line between, because some templates take no list of parts.
func joined(a, b *chat.Message) *chat.Message {
	parts := slices.Concat(a.Parts, b.Parts)
	if a.Plain && b.Plain {
		parts = []chat.Part{chat.TextPart(a.Text() + "\n\n" + b.Text())}
	}
	return &chat.Message{Role: a.Role, Parts: parts, Plain: a.Plain && b.Plain, Name: a.Name}
}
