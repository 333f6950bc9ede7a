package server

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/reply"
)

// llmOptions are the members of a reply's request that chat completions have by
// the same names. What they may be is for the model's client to check.
type llmOptions struct {
	topP, presence, frequency *float64
	seed                      *int
	stop, format              json.RawMessage
	parallel                  *bool
	effort, tier, user        *string
}

func (o *llmOptions) fields() []field {
	return []field{
		{"frequency_penalty", false, &o.frequency}, {"parallel_tool_calls", false, &o.parallel}, {"presence_penalty", false, &o.presence},
		{"reasoning_effort", false, &o.effort}, {"response_format", false, &o.format}, {"seed", false, &o.seed},
		{"service_tier", false, &o.tier}, {"stop", false, &o.stop}, {"top_p", false, &o.topP}, {"user", false, &o.user},
	}
}

func (o *llmOptions) read() (read reply.Options, err error) {
	read = reply.Options{
		TopP: o.topP, PresencePenalty: o.presence, FrequencyPenalty: o.frequency, Seed: o.seed, ResponseFormat: o.format,
		ParallelToolCalls: o.parallel, ReasoningEffort: deref(o.effort), ServiceTier: deref(o.tier), User: deref(o.user),
	}
	read.Stop, err = stops(o.stop)
	return read, err
}

// stops reads one text or an array of them.
func stops(raw json.RawMessage) (list []string, err error) {
	if raw == nil {
		return nil, nil
	}
	if raw[0] == '"' {
		s, err := textOf(raw, "", "stop")
		return []string{s}, err
	}
	if raw[0] != '[' {
		return nil, problemf(CodeWrongType, "stop", "This must be a string or an array of strings.")
	}
	for element := range chat.Elements(raw) {
		s, err := textOf(element, "", fmt.Sprintf("stop[%d]", len(list)))
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}
