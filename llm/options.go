package llm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
)

// Options are members of a chat-completions request that say how a model is to
// answer. They have the names of the request. A nil or empty option is not
// sent, and the model chooses.
type Options struct {
	TopP              *float64        // top_p, 0 to 1
	PresencePenalty   *float64        // presence_penalty, -2 to 2
	FrequencyPenalty  *float64        // frequency_penalty, -2 to 2
	Seed              *int            // seed
	Stop              []string        // stop: texts before which the answer ends, 4 at most
	ResponseFormat    json.RawMessage // response_format: an object of the type text, json_object or json_schema
	ParallelToolCalls *bool           // parallel_tool_calls
	ReasoningEffort   string          // reasoning_effort: a word of the provider's, such as low
	ServiceTier       string          // service_tier: the same
	User              string          // user: the name of the asking user for the provider
}

// MaxStops is how many texts Options.Stop may have. OpenAI has the same limit.
const MaxStops = 4

// Check returns the name in the request of an option that can't be sent, and
// the reason. It returns "" and "" if all options can be sent.
func (o Options) Check() (name, why string) {
	for _, n := range []struct {
		name        string
		value       *float64
		least, most float64
	}{{"top_p", o.TopP, 0, 1}, {"presence_penalty", o.PresencePenalty, -2, 2}, {"frequency_penalty", o.FrequencyPenalty, -2, 2}} {
		if n.value != nil && !(*n.value >= n.least && *n.value <= n.most) { // NaN is neither
			return n.name, fmt.Sprintf("It must be %g to %g.", n.least, n.most)
		}
	}
	if len(o.Stop) > MaxStops {
		return "stop", fmt.Sprintf("There are %d texts, and %d is the most.", len(o.Stop), MaxStops)
	}
	if slices.Contains(o.Stop, "") {
		return "stop", "A text at which an answer stops can't be empty."
	}
	for _, o := range [][2]string{{"reasoning_effort", o.ReasoningEffort}, {"service_tier", o.ServiceTier}} {
		if name, word := o[0], o[1]; len(word) > 40 || strings.ContainsFunc(word, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' }) {
			return name, "It must be one word of small letters, such as low or default."
		}
	}
	if o.ResponseFormat != nil {
		return checkFormat(o.ResponseFormat)
	}
	return "", ""
}

func checkFormat(raw json.RawMessage) (name, why string) {
	var format struct {
		Type       string
		JSONSchema *struct {
			Name   string
			Schema json.RawMessage
		} `json:"json_schema"`
	}
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &format) != nil {
		return "response_format", `It must be an object with a type, such as {"type": "json_object"}.`
	}
	switch format.Type {
	case "text", "json_object":
		return "", ""
	case "json_schema":
		switch s := format.JSONSchema; {
		case s == nil:
			return "response_format.json_schema", "The type json_schema needs the schema, as an object with name and schema."
		case s.Name == "":
			return "response_format.json_schema.name", "The schema needs a name."
		case len(s.Schema) > 0 && s.Schema[0] != '{':
			return "response_format.json_schema.schema", "The schema must be an object."
		}
		return "", ""
	}
	return "response_format.type", "It must be text, json_object or json_schema."
}

// members are those of the request object that are set.
func (o Options) members() (set []member) {
	add := func(name string, is bool, value any) {
		if is {
			raw, _ := chat.Marshal(value) // finite numbers and strings always encode
			set = append(set, member{name, raw})
		}
	}
	add("top_p", o.TopP != nil, o.TopP)
	add("presence_penalty", o.PresencePenalty != nil, o.PresencePenalty)
	add("frequency_penalty", o.FrequencyPenalty != nil, o.FrequencyPenalty)
	add("seed", o.Seed != nil, o.Seed)
	add("stop", len(o.Stop) > 0, o.Stop)
	add("parallel_tool_calls", o.ParallelToolCalls != nil, o.ParallelToolCalls)
	add("reasoning_effort", o.ReasoningEffort != "", o.ReasoningEffort)
	add("service_tier", o.ServiceTier != "", o.ServiceTier)
	add("user", o.User != "", o.User)
	if o.ResponseFormat != nil {
		set = append(set, member{"response_format", o.ResponseFormat}) // byte for byte, as a provider may cache by it
	}
	return set
}

// A member is one of the request object.
type member struct {
	name  string
	value json.RawMessage
}
