package wire

import (
	"encoding/json"

	"github.com/coppice-chat/coppice/chat"
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
			tools = append(tools, t.function())
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
		extra["tool_choice"] = object(is("type", quote("function")), is("function", object(is("name", quote(r.Choice.Name)))))
	default:
		return nil, wrong("tool_choice.type", "It must be auto, any, tool or none.")
	}
	if len(tools) == 0 {
		delete(extra, "tool_choice")
	} else if r.Choice.OnlyOne {
		extra["parallel_tool_calls"] = json.RawMessage("false")
	}
	if r.Schema != nil {
		extra["response_format"] = object(is("type", quote("json_schema")), is("json_schema", object(is("name", quote("answer")), is("strict", json.RawMessage("true")), is("schema", r.Schema))))
	}
	if r.TopK != nil {
		extra["top_k"] = r.TopK
	}
	return extra, nil
}

// function is a tool of chat completions.
func (t Tool) function() json.RawMessage {
	var description json.RawMessage // nil leaves the member out
	if t.Description != "" {
		description = quote(t.Description)
	}
	function := object(is("name", quote(t.Name)), is("description", description), is("parameters", orEmpty(t.InputSchema)))
	return object(is("type", quote("function")), is("function", function))
}

// object makes a JSON object.
func object(members ...chat.Member) json.RawMessage { return chat.AppendObject(nil, members) }

// is is a member of an object.
func is(name string, value json.RawMessage) chat.Member { return chat.Member{Name: name, Value: value} }
