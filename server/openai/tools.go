package openai

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/fault"
)

const maxTools = 1024

// A functionTool is a tool of a request and of a Response, which has all of its
// members.
type functionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
	Namespace   string          `json:"namespace,omitempty"`
}

// flat is the tool's name to a model, whose functions have no namespaces.
func (t functionTool) flat() string {
	if t.Namespace == "" {
		return t.Name
	}
	return flatName(t.Namespace, t.Name)
}

// echo is the tool as a Response has it.
func (t functionTool) echo() json.RawMessage {
	if t.Parameters == nil {
		t.Parameters = json.RawMessage("null")
	}
	return marshal(t)
}

// chat is the tool as chat completions have it.
func (t functionTool) chat() json.RawMessage {
	type function struct {
		Name        string          `json:"name"`
		Description *string         `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
		Strict      *bool           `json:"strict,omitempty"`
	}
	return marshal(struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{t.flat(), t.Description, t.Parameters, t.Strict}})
}

// toolNames are the functions that stand in namespaces, by the names that a
// model knows them by.
type toolNames map[string]struct{ space, name string }

func flatName(space, name string) string {
	if strings.HasSuffix(space, "__") {
		return space + name
	}
	return space + "__" + name
}

// split gives the namespace and the name that a client knows a function by.
func (n toolNames) split(name string) (space, own string) {
	if found, ok := n[name]; ok {
		return found.space, found.name
	}
	return "", name
}

// namesOf are those of the tools that stand in namespaces.
func namesOf(tools []functionTool) (names toolNames) {
	for _, t := range tools {
		if t.Namespace == "" {
			continue
		}
		if names == nil {
			names = toolNames{}
		}
		names[t.flat()] = struct{ space, name string }{t.Namespace, t.Name}
	}
	return names
}

// tools reads the tools of a request to Responses, of which the functions are
// kept. Tools that OpenAI itself runs, such as web_search, are left out: some
// clients offer them always, and a model may do without.
func (o object) tools(name string) (tools []functionTool) {
	seen := map[string]bool{}
	add := func(f object, space string) {
		t := f.function(space)
		if seen[t.flat()] {
			f.wrong("name", codeValue, "Two tools have the name %q.", fault.Clip(t.flat()))
		}
		seen[t.flat()] = true
		tools = append(tools, t)
	}
	for i, raw := range o.list(name, maxTools) {
		tool := o.object(raw, o.at.element(name, i), "type", "name", "description", "parameters", "strict", "tools")
		switch tool.required("type", math.MaxInt) {
		case "function":
			add(tool, "")
		case "namespace":
			space := tool.required("name", math.MaxInt)
			for j, raw := range tool.list("tools", maxTools) {
				inner := o.object(raw, tool.at.element("tools", j), "type", "name", "description", "parameters", "strict")
				if inner.required("type", math.MaxInt) == "function" {
					add(inner, space)
				}
			}
		}
	}
	return tools
}

// function reads a function, of a namespace or of none.
func (o object) function(space string) functionTool {
	t := functionTool{Type: "function", Name: o.required("name", math.MaxInt), Description: o.text("description", math.MaxInt), Namespace: space}
	if t.Parameters = o.get("parameters"); t.Parameters != nil && t.Parameters[0] != '{' {
		o.wrong("parameters", codeType, "This must be a JSON schema, which is an object.")
	}
	if o.get("strict") != nil {
		strict := o.boolean("strict", false)
		t.Strict = &strict
	}
	return t
}

// A choice says which tools a model may call, and whether it must.
type choice struct {
	echo    json.RawMessage // as a Response has it
	chat    json.RawMessage // as chat completions have it; nil for their default
	allowed []string        // the only tools that may be called; nil for all
}

// toolChoice reads which of the tools may be called. A list of allowed tools is
// served by offering these alone, which every model understands.
func (o object) toolChoice(name string, tools []functionTool) choice {
	c := choice{echo: json.RawMessage(`"auto"`)}
	value := o.get(name)
	if value == nil {
		return c
	}
	c.echo = value
	if value[0] == '"' {
		mode := o.oneOf(name, "none", "auto", "required")
		c.chat = o.mode(name, mode, tools)
		return c
	}
	at := o.at.member(name)
	wish := o.object(value, at, "type", "name", "namespace", "mode", "tools")
	switch kind := wish.required("type", math.MaxInt); kind {
	case "function":
		called := wish.named(tools)
		c.chat = marshal(map[string]any{"type": "function", "function": map[string]string{"name": called}})
	case "allowed_tools":
		c.allowed = []string{}
		for i, raw := range wish.list("tools", maxTools) {
			tool := o.object(raw, at.element("tools", i), "type", "name", "namespace")
			if tool.required("type", math.MaxInt) == "function" {
				c.allowed = append(c.allowed, tool.named(tools))
			}
		}
		c.chat = wish.mode("mode", wish.oneOf("mode", "auto", "required"), tools)
	default:
		wish.wrong("type", codeUnsupported, "A choice of type %q is not supported. Only functions can be called here.", fault.Clip(kind))
	}
	return c
}

// mode gives a mode as chat completions have it, where it isn't their default.
func (o object) mode(name, mode string, tools []functionTool) json.RawMessage {
	if mode == "required" && len(tools) == 0 {
		o.wrong(name, codeUnsupported, "No function is among the tools, so none can be called.")
	}
	if mode == "" || mode == "auto" {
		return nil
	}
	return marshal(mode)
}

// named reads the name of a function that is among the tools.
func (o object) named(tools []functionTool) string {
	name := o.required("name", math.MaxInt)
	if space := o.text("namespace", math.MaxInt); space != nil && *space != "" {
		name = flatName(*space, name)
	}
	if !slices.ContainsFunc(tools, func(t functionTool) bool { return t.flat() == name }) {
		o.wrong("name", codeValue, "No function of the name %q is among the tools.", fault.Clip(name))
	}
	return name
}
