package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-chat/coppice/chat/reader"
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
	if arguments = bytes.TrimSpace(arguments); len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	if arguments[0] != '{' {
		return fault.New(fault.Invalid, reader.CodeType, "", "The arguments must be an object.")
	}
	o := reader.OpenStrict(arguments)
	check(s, o)
	return o.Failed()
}

// check checks an object against those parts of a schema that schemaOf makes. An object
// whose schema names no members may have any.
func check(s *jsonschema.Schema, o reader.Object) {
	if len(s.Properties) == 0 {
		return
	}
	o.Only(slices.Collect(maps.Keys(s.Properties)))
	for _, name := range s.Required {
		if !o.Has(name) {
			o.Missing(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		checkMember(s.Properties[name], o, name)
	}
}

func checkMember(s *jsonschema.Schema, o reader.Object, name string) {
	value := o.Get(name)
	if len(s.AnyOf) > 0 { // a string, or the other
		switch s = s.AnyOf[1]; {
		case value != nil && value[0] == '"':
			return
		case value != nil && value[0] != '[':
			o.Wrong(name, reader.CodeType, "This must be a string or an array.")
		}
	}
	switch s.Type {
	case "string":
		o.String(name)
	case "integer":
		o.Integer(name, math.MinInt, math.MaxInt)
	case "boolean":
		o.Boolean(name, false)
	case "object":
		check(s, o.Inner(name))
	case "array":
		if s.Items.Type == "string" {
			o.Texts(name)
			return
		}
		for _, element := range o.Objects(name, math.MaxInt) {
			check(s.Items, element)
		}
	}
}
