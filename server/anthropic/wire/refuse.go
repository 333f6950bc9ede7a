package wire

import (
	"encoding/json"
	"net/http"

	"github.com/coppice-chat/coppice/chat/sdk"
)

// A Refusal is an error in the form of Anthropic's clients.
type Refusal struct {
	Type    string
	Message string
	Code    string // that the SDKs act by; "" for none
}

// types are Anthropic's types of errors, by status.
var types = map[int]string{
	http.StatusBadRequest:            "invalid_request_error",
	http.StatusUnauthorized:          "authentication_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusConflict:              "conflict_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusServiceUnavailable:    "overloaded_error",
	http.StatusGatewayTimeout:        "timeout_error",
}

// ThreadNotFound is the code of the error by which the SDKs send the whole history of a
// thread.
const ThreadNotFound = "thread_not_found"

// Refuse returns an error of this status and code, in which field names the member of
// the request that is wrong; "" for none.
func Refuse(status int, code, field, detail string) Refusal {
	r := Refusal{Type: types[status], Message: detail}
	switch {
	case r.Type != "":
	case status < http.StatusInternalServerError:
		r.Type = "invalid_request_error"
	default:
		r.Type = "api_error"
	}
	if code == ThreadNotFound {
		r.Code = code
	}
	if field != "" {
		r.Message = field + ": " + r.Message
	}
	if code == "prompt_too_long" { // by these words clients know that they should compact
		r.Message = "prompt is too long: " + r.Message
	}
	return r
}

// Encode writes the body of the error's answer.
func (r Refusal) Encode() json.RawMessage { return sdk.JSON("type", "error", "error", r.error()) }

// Event writes the error as the last event of a stream.
func (r Refusal) Event(dst []byte) []byte { return appendEvent(dst, "error", "error", r.error()) }

func (r Refusal) error() json.RawMessage {
	var details json.RawMessage
	if r.Code != "" {
		details = sdk.JSON("error_code", r.Code)
	}
	return sdk.JSON("type", r.Type, "message", r.Message, "details?", details)
}
