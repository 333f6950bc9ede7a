package server

import (
	"encoding/json"

	"github.com/coppice-chat/coppice/reply"
)

// llmOptions are the members of a reply's request that chat completions have by
// the same names. What they may be is for the model's client to check.
type llmOptions struct {
	topP, presence, frequency *float64
	seed                      *int
	stop                      oneOrMore
	format                    json.RawMessage
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

func (o *llmOptions) read() reply.Options {
	return reply.Options{
		TopP: o.topP, PresencePenalty: o.presence, FrequencyPenalty: o.frequency, Seed: o.seed, ResponseFormat: o.format,
		ParallelToolCalls: o.parallel, ReasoningEffort: deref(o.effort), ServiceTier: deref(o.tier), User: deref(o.user), Stop: o.stop,
	}
}
