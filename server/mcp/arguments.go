package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
)

// checkArguments refuses arguments that a tool's schema doesn't allow, as the REST
// API refuses a body's fields. The SDK would refuse them as well, but in words
// that don't say how to fix the call.
func (t tools) checkArguments(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if params, ok := req.GetParams().(*sdk.CallToolParamsRaw); ok && t.arguments[params.Name] != nil {
			if err := checkObject(t.arguments[params.Name], params.Arguments); err != nil {
				callOf(ctx).failed(err)
				var out sdk.CallToolResult
				out.SetError(refused{server.ProblemOf(err)})
				return &out, nil
			}
			var named struct {
				ConversationID uuid.UUID `json:"conversation_id"`
			}
			if c := callOf(ctx); c.about != nil && json.Unmarshal(params.Arguments, &named) == nil {
				c.about(named.ConversationID)
			}
		}
		return next(ctx, method, req)
	}
}

// checkObject checks all arguments of a call. None at all are an empty object.
func checkObject(s *jsonschema.Schema, arguments json.RawMessage) error {
	arguments = bytes.TrimSpace(arguments)
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	if arguments[0] != '{' {
		return fault.New(fault.Invalid, string(server.CodeWrongType), "", "The arguments must be an object.")
	}
	decoder := json.NewDecoder(bytes.NewReader(arguments))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return fault.New(fault.Invalid, string(server.CodeInvalidJSON), "", "The arguments are no JSON: %s.", err)
	}
	return check(s, "", value)
}

// check checks a value against those parts of a schema that schemaOf makes.
func check(s *jsonschema.Schema, path string, value any) error {
	if len(s.AnyOf) > 0 {
		var kinds []string
		for _, either := range s.AnyOf {
			if isOf(either.Type, value) {
				return check(either, path, value)
			}
			kinds = append(kinds, typeNames[either.Type])
		}
		return wrongType(path, strings.Join(kinds, " or "))
	}
	if !isOf(s.Type, value) {
		return wrongType(path, typeNames[s.Type])
	}
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			if err := check(s.Items, fmt.Sprintf("%s[%d]", path, i), element); err != nil {
				return err
			}
		}
	case map[string]any:
		return checkMembers(s, path, value)
	}
	return nil
}

// checkMembers checks an object's members. An object whose schema names none may
// have any.
func checkMembers(s *jsonschema.Schema, path string, members map[string]any) error {
	if len(s.Properties) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		property := s.Properties[name]
		if property == nil {
			return fault.New(fault.Invalid, string(server.CodeUnknownField), inside(path, fault.Clip(name)),
				"There is no field of this name here. The fields are %s.", strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", "))
		}
		if err := check(property, inside(path, name), members[name]); err != nil {
			return err
		}
	}
	for _, name := range s.Required {
		if _, there := members[name]; !there {
			return fault.New(fault.Invalid, string(server.CodeMissingField), inside(path, name), "The field is required.")
		}
	}
	return nil
}

func inside(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

var typeNames = map[string]string{
	"string": "a string", "integer": "a whole number", "boolean": "true or false", "array": "an array", "object": "an object",
}

func wrongType(path, kind string) error {
	return fault.New(fault.Invalid, string(server.CodeWrongType), path, "This must be %s.", kind)
}

func isOf(kind string, value any) (is bool) {
	switch kind {
	case "string":
		_, is = value.(string)
	case "boolean":
		_, is = value.(bool)
	case "array":
		_, is = value.([]any)
	case "object":
		_, is = value.(map[string]any)
	case "integer":
		var n json.Number
		if n, is = value.(json.Number); is {
			_, err := n.Int64()
			is = err == nil
		}
	}
	return is
}
