package wire

import (
	"encoding/json"
	"net/http"

	"github.com/coppice-chat/coppice/chat/sdk"
)

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

// Refuse returns the body of an error of this status and code, which is the data of a
// stream's last event, too. field names the member of the request that is wrong; "" for
// none.
func Refuse(status int, code, field, detail string) json.RawMessage {
	kind := types[status]
	switch {
	case kind != "":
	case status < http.StatusInternalServerError:
		kind = "invalid_request_error"
	default:
		kind = "api_error"
	}
	var details json.RawMessage // by which the SDKs act
	if code == ThreadNotFound {
		details = sdk.JSON("error_code", code)
	}
	if field != "" {
		detail = field + ": " + detail
	}
	if code == "prompt_too_long" { // by these words clients know that they should compact
		detail = "prompt is too long: " + detail
	}
	return sdk.JSON("type", "error", "error", sdk.JSON("type", kind, "message", detail, "details?", details))
}
