package wire

import (
	"encoding/json"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/chat/sdk"
)

// Extra returns the members of a chat-completions request that say what this one says:
// tools, tool_choice, parallel_tool_calls, response_format and top_k. Tools that
// Anthropic runs itself are left out, because no other model has them.
func (r *Request) Extra() (map[string]json.RawMessage, error) {
	o, extra := r.body, map[string]json.RawMessage{}
	choice := o.Inner("tool_choice")
	called, named := choice.String("name"), false
	var tools []json.RawMessage
	for _, t := range o.Objects("tools", most) {
		if kind := t.String("type"); kind == "" || kind == "custom" {
			name := t.Required("name")
			named = named || name == called
			function := sdk.JSON("name", name, "description?", t.String("description"), "parameters", orEmpty(t.Get("input_schema")))
			tools = append(tools, sdk.JSON("type", "function", "function", function))
		}
	}
	if len(tools) > 0 {
		extra["tools"] = chat.AppendArray(nil, tools)
	}
	switch choice.OneOf("type", "auto", "any", "none", "tool") {
	case "any":
		extra["tool_choice"] = quote("required")
	case "none":
		extra["tool_choice"] = quote("none")
	case "tool":
		if !named {
			choice.Wrong("name", reader.CodeValue, "The request has no tool of this name that a client runs.")
		}
		extra["tool_choice"] = sdk.JSON("type", "function", "function", sdk.JSON("name", called))
	}
	if len(tools) == 0 {
		delete(extra, "tool_choice")
	} else if choice.Boolean("disable_parallel_tool_use", false) {
		extra["parallel_tool_calls"] = json.RawMessage("false")
	}
	if schema := o.Inner("output_config").Inner("format").Get("schema"); schema != nil {
		extra["response_format"] = sdk.JSON("type", "json_schema", "json_schema", sdk.JSON("name", "answer", "strict", true, "schema", schema))
	}
	if k := o.Get("top_k"); k != nil {
		extra["top_k"] = k
	}
	return extra, o.Failed()
}
