package wire

import (
	"encoding/json"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
)

// Extra returns the members of a chat-completions request that say what this one says:
// tools, tool_choice, parallel_tool_calls, response_format and top_k. Tools that
// Anthropic runs itself are left out, because no other model has them.
func (r *Request) Extra() (map[string]json.RawMessage, error) {
	extra := map[string]json.RawMessage{}
	var tools []json.RawMessage
	named := false
	for _, t := range r.Tools {
		if !t.own() {
			named = named || t.Name == r.Choice.Name
			function := sdk.JSON("name", t.Name, "description?", t.Description, "parameters", orEmpty(t.InputSchema))
			tools = append(tools, sdk.JSON("type", "function", "function", function))
		}
	}
	if len(tools) > 0 {
		extra["tools"] = chat.AppendArray(nil, tools)
	}
	switch r.Choice.Type {
	case "", "auto": // which models do by themselves
	case "any":
		extra["tool_choice"] = quote("required")
	case "none":
		extra["tool_choice"] = quote("none")
	case "tool":
		if !named {
			return nil, wrong("tool_choice.name", "The request has no tool of this name that a client runs.")
		}
		extra["tool_choice"] = sdk.JSON("type", "function", "function", sdk.JSON("name", r.Choice.Name))
	default:
		return nil, wrong("tool_choice.type", "It must be auto, any, tool or none.")
	}
	if len(tools) == 0 {
		delete(extra, "tool_choice")
	} else if r.Choice.OnlyOne {
		extra["parallel_tool_calls"] = json.RawMessage("false")
	}
	if r.Schema != nil {
		extra["response_format"] = sdk.JSON("type", "json_schema", "json_schema", sdk.JSON("name", "answer", "strict", true, "schema", r.Schema))
	}
	if r.TopK != nil {
		extra["top_k"] = r.TopK
	}
	return extra, nil
}
