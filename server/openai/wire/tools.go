package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
)

const maxTools = 1024

// Kinds of tools that a client runs. To a model, a search is a function.
const (
	toolFunction = "function"
	toolCustom   = "custom"      // takes a text
	toolSearch   = "tool_search" // finds tools that are offered from then on
)

// A tool is one of a request and of a Response, of which clients demand a function's members.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
	Format      json.RawMessage `json:"format,omitempty"`    // of a custom tool's text
	Execution   string          `json:"execution,omitempty"` // of a search
	Namespace   string          `json:"namespace,omitempty"`
}

// flat is the tool's name to a model, whose functions have no namespaces.
func (t tool) flat() string { return flatName(t.Namespace, t.Name) }

// chat is the tool as chat completions have it.
func (t tool) chat() json.RawMessage {
	kind, format := toolFunction, t.Format
	if t.Type == toolCustom {
		kind = toolCustom
	}
	if string(chat.MemberOf(format, "type")) == `"grammar"` {
		format = sdk.JSON("grammar", chat.WithMember(format, "type", nil), "type", "grammar")
	}
	return sdk.JSON("type", kind, kind, sdk.JSON("name", t.flat(), "description?", t.Description, "parameters?", t.Parameters, "strict?", t.Strict, "format?", format))
}

// A toolName is what a client knows a tool by.
type toolName struct{ kind, space, name string }

// toolNames are the tools that aren't plain functions, by the names that a model knows
// them by.
type toolNames map[string]toolName

func flatName(space, name string) string {
	if space == "" || strings.HasSuffix(space, "__") {
		return space + name
	}
	return space + "__" + name
}

// of gives what a client knows a tool by.
func (n toolNames) of(name string) toolName {
	if found, ok := n[name]; ok {
		return found
	}
	return toolName{toolFunction, "", name}
}

// names are those of the tools that aren't plain functions.
func (e Echo) names() (names toolNames) {
	for _, raw := range e.Tools {
		var t tool
		if bytes.HasPrefix(raw, []byte(`{"type":"function"`)) && !bytes.Contains(raw, []byte(`"namespace"`)) || json.Unmarshal(raw, &t) != nil {
			continue
		}
		if names == nil {
			names = toolNames{}
		}
		names[t.flat()] = toolName{t.Type, t.Namespace, t.Name}
	}
	return names
}

// toolsIn reads the tools of a request to Responses, of which those are kept that the
// client runs. Tools that OpenAI itself runs, such as web_search, are left out: some
// clients offer them always, and a model may do without.
func toolsIn(o reader.Object) (tools []tool) {
	seen := map[string]bool{}
	add := func(t tool, f reader.Object) {
		if seen[t.flat()] {
			f.Wrong("name", reader.CodeValue, "Two tools have the name %q.", fault.Clip(t.flat()))
		}
		seen[t.flat()] = true
		tools = append(tools, t)
	}
	for _, outer := range o.Objects("tools", maxTools) {
		switch kind := outer.Required("type"); kind {
		case toolFunction, toolCustom:
			add(toolOf(outer, kind, ""), outer)
		case toolSearch:
			if outer.OneOf("execution", "client", "server") == "client" {
				t := tool{Type: kind, Name: toolSearch, Execution: "client", Description: outer.Text("description", math.MaxInt), Parameters: outer.Get("parameters")}
				add(t, outer)
			}
		case "namespace":
			space := outer.Required("name")
			for _, inner := range outer.Objects("tools", maxTools) {
				if kind := inner.Required("type"); kind == toolFunction || kind == toolCustom {
					add(toolOf(inner, kind, space), inner)
				}
			}
		}
	}
	return tools
}

// toolOf reads a function or a custom tool, of a namespace or of none.
func toolOf(o reader.Object, kind, space string) tool {
	t := tool{Type: kind, Name: o.Required("name"), Description: o.Text("description", math.MaxInt), Namespace: space}
	if kind == toolCustom {
		t.Format = o.Get("format")
		return t
	}
	if t.Parameters = o.Get("parameters"); t.Parameters != nil && t.Parameters[0] != '{' {
		o.Wrong("parameters", reader.CodeType, "This must be a JSON schema, which is an object.")
	}
	if o.Get("strict") != nil {
		strict := o.Boolean("strict", false)
		t.Strict = &strict
	}
	return t
}

// withMore adds the tools that items of the input offer, unless the names are taken.
func withMore(tools, more []tool) []tool {
	for _, t := range more {
		if !slices.ContainsFunc(tools, func(o tool) bool { return o.flat() == t.flat() }) {
			tools = append(tools, t)
		}
	}
	return tools
}

// A choice says which tools a model may call, and whether it must.
type choice struct {
	echo    json.RawMessage // as a Response has it
	chat    json.RawMessage // as chat completions have it; nil for their default
	allowed []string        // the only tools that may be called; nil for all
}

// choiceOf reads which of the tools may be called. A list of allowed tools is
// served by offering these alone, which every model understands.
func choiceOf(o reader.Object, tools []tool) choice {
	const name = "tool_choice"
	c := choice{echo: json.RawMessage(`"auto"`)}
	value := o.Get(name)
	if value == nil {
		return c
	}
	c.echo = value
	if value[0] == '"' {
		mode := o.OneOf(name, "none", "auto", "required")
		c.chat = modeOf(o, name, mode, tools)
		return c
	}
	wish := o.Inner(name)
	switch kind := wish.Required("type"); kind {
	case toolFunction, toolCustom:
		called := namedIn(wish, tools)
		if called.Type != toolCustom {
			called.Type = toolFunction
		}
		c.chat = sdk.JSON(called.Type, sdk.JSON("name", called.flat()), "type", called.Type)
	case "allowed_tools":
		c.allowed = []string{}
		for _, tool := range wish.Objects("tools", maxTools) {
			if kind := tool.Required("type"); kind == toolFunction || kind == toolCustom {
				c.allowed = append(c.allowed, namedIn(tool, tools).flat())
			}
		}
		c.chat = modeOf(wish, "mode", wish.OneOf("mode", "auto", "required"), tools)
	default:
		wish.Wrong("type", reader.CodeUnsupported, "A choice of type %q is not supported. Only functions and custom tools can be called here.", fault.Clip(kind))
	}
	return c
}

// modeOf gives a mode as chat completions have it, where it isn't their default.
func modeOf(o reader.Object, name, mode string, tools []tool) json.RawMessage {
	if mode == "required" && len(tools) == 0 {
		o.Wrong(name, reader.CodeUnsupported, "No function is among the tools, so none can be called.")
	}
	if mode == "" || mode == "auto" {
		return nil
	}
	return chat.MustMarshal(mode)
}

// namedIn reads the name of a tool that is among these.
func namedIn(o reader.Object, tools []tool) tool {
	name := flatName(o.String("namespace"), o.Required("name"))
	i := slices.IndexFunc(tools, func(t tool) bool { return t.flat() == name })
	if i < 0 {
		o.Wrong("name", reader.CodeValue, "No function of the name %q is among the tools.", fault.Clip(name))
		return tool{}
	}
	return tools[i]
}

// toolItem reads an item of a tool that is no plain function: a call, its output, or tools
// that are offered from there on. It is no such item where it isn't ok.
func (in *inputReader) toolItem(i int, kind string, o reader.Object, id string) (ok bool) {
	switch kind {
	case "custom_tool_call":
		in.call(i, o, id, chat.Call{Arguments: o.Given("input"), Name: o.Required("name"), Custom: true})
	case "tool_search_call":
		if o.Get("call_id") != nil { // else OpenAI ran it
			arguments := "{}"
			if value := o.Get("arguments"); value != nil {
				if arguments = string(value); value[0] == '"' {
					arguments = chat.String(value)
				}
			}
			in.call(i, o, id, chat.Call{Name: toolSearch, Arguments: arguments})
		}
	case "tool_search_output":
		found := toolsIn(o)
		in.out.tools = withMore(in.out.tools, found)
		if o.Get("call_id") != nil {
			var names []string
			for _, t := range found {
				names = append(names, t.flat())
			}
			text := "No tool was found."
			if names != nil {
				text = "These tools can be called now: " + strings.Join(names, ", ") + "."
			}
			call := o.Required("call_id")
			in.whole(i, id, &chat.Message{Role: chat.Tool, CallID: &call, Parts: []chat.Part{chat.TextPart(text)}}, Note{})
		}
	case "additional_tools":
		in.out.tools = withMore(in.out.tools, toolsIn(o))
	default:
		return false
	}
	return true
}

// call reads a call of a tool, which belongs to the assistant's turn.
func (in *inputReader) call(i int, o reader.Object, id string, call chat.Call) {
	call.ID = o.Required("call_id")
	call.Name = flatName(o.String("namespace"), call.Name)
	_, t := in.open(i, id, false)
	t.calls = append(t.calls, call)
}
