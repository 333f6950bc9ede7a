package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-chat/coppice/fault"
)

// methods are the protocol's, with what their params are decoded into. The SDK
// knows them as well, but what it says of params names its own types, and what it
// says over HTTP of a method that it doesn't know is no JSON.
var methods = map[string]func() any{
	"initialize": params[sdk.InitializeParams], "ping": params[sdk.PingParams], "server/discover": params[sdk.DiscoverParams],
	"tools/list": params[sdk.ListToolsParams], "tools/call": params[sdk.CallToolParamsRaw],
	"resources/list": params[sdk.ListResourcesParams], "resources/templates/list": params[sdk.ListResourceTemplatesParams], "resources/read": params[sdk.ReadResourceParams],
	"resources/subscribe": params[sdk.SubscribeParams], "resources/unsubscribe": params[sdk.UnsubscribeParams], "subscriptions/listen": params[sdk.SubscriptionsListenParams],
	"prompts/list": params[sdk.ListPromptsParams], "prompts/get": params[sdk.GetPromptParams],
	"completion/complete": params[sdk.CompleteParams], "logging/setLevel": params[level],
	"notifications/initialized": params[sdk.InitializedParams], "notifications/cancelled": params[sdk.CancelledParams],
	"notifications/progress": params[sdk.ProgressNotificationParams], "notifications/roots/list_changed": params[struct{}],
}

func params[T any]() any { return new(T) }

// level is of logging/setLevel. The SDK's type is deprecated, as the protocol's
// feature is.
type level struct {
	Level string `json:"level"`
}

// refusal says why a request can't be handled; nil where the SDK may try.
func refusal(req *jsonrpc.Request) *jsonrpc.Error {
	params, known := methods[req.Method]
	if !known {
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("There is no method %q here.", fault.Clip(req.Method))}
	}
	if len(req.Params) == 0 {
		return nil
	}
	err := json.Unmarshal(req.Params, params())
	if err == nil {
		return nil
	}
	message := fmt.Sprintf("The params are not those of %s.", req.Method)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		path := "params"
		if wrong.Field != "" {
			path += "." + wrong.Field
		}
		if kind := kindOf(wrong.Type); kind != "" {
			message = fmt.Sprintf("%s: This must be %s.", path, kind)
		}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}

// kindOf names the JSON that a Go type takes.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "an array"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Int, reflect.Int64, reflect.Float64:
		return "a number"
	default:
		return ""
	}
}

// decode reads a message of JSON-RPC.
func decode(body []byte) (jsonrpc.Message, *jsonrpc.Error) {
	m, err := jsonrpc.DecodeMessage(body)
	if err == nil {
		return m, nil
	}
	if err := json.Unmarshal(body, new(json.RawMessage)); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: fmt.Sprintf("The body is no JSON: %s.", err)}
	}
	return nil, &jsonrpc.Error{
		Code:    jsonrpc.CodeInvalidRequest,
		Message: `The body is no message of JSON-RPC: it takes "jsonrpc": "2.0", a method that is a string, params that are an object, and an id that is a string or a whole number.`,
	}
}

// errorBody is an answer of JSON-RPC that holds an error. Its id is null where the
// request's isn't known.
func errorBody(id jsonrpc.ID, e *jsonrpc.Error) []byte {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id.Raw(), "error": e})
	if err != nil {
		panic(err) // strings and numbers
	}
	return body
}

// statuses is the first version of the protocol that has HTTP statuses for errors
// of JSON-RPC. To clients of older versions they say that no server is here.
const statuses = "2026-07-28"

// statusOf gives the HTTP status of an answer that refuses a request.
func statusOf(version string, call bool, code int64) int {
	switch {
	case call && version < statuses && (code == jsonrpc.CodeMethodNotFound || code == jsonrpc.CodeInvalidParams):
		return http.StatusOK
	case call && code == jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	default:
		return http.StatusBadRequest
	}
}

// refusedRequest is the answer to a request that the SDK doesn't get.
type refusedRequest struct {
	id     jsonrpc.ID
	status int
	err    *jsonrpc.Error
}

func (a refusedRequest) Write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_, err := w.Write(errorBody(a.id, a.err))
	return err
}

// watched tells whether something was written. What the SDK refuses in plain text
// becomes an error of JSON-RPC.
type watched struct {
	http.ResponseWriter
	id           jsonrpc.ID
	hold         func(bytes int) error // waits until so many bytes may be in memory
	err          error                 // of hold
	begun, plain bool
}

func (w *watched) WriteHeader(status int) {
	w.begun = true
	if w.plain = strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain"); w.plain {
		w.Header().Set("Content-Type", "application/json")
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(p []byte) (int, error) {
	if !w.begun {
		if w.err = w.hold(len(p)); w.err != nil {
			return 0, w.err
		}
	}
	w.begun = true
	if !w.plain {
		return w.ResponseWriter.Write(p)
	}
	_, err := w.ResponseWriter.Write(errorBody(w.id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: strings.TrimSpace(string(p))}))
	return len(p), err
}

// Unwrap lets http.ResponseController find the connection.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
