package wire

import (
	"encoding/json"
	"net/http"

	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/chat/sdk"
)

// An ErrorBody says what is wrong, in OpenAI's envelope.
type ErrorBody struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// JSON returns the body of the error's answer.
func (e ErrorBody) JSON() json.RawMessage {
	return sdk.JSON("error", e)
}

const (
	typeInvalid = "invalid_request_error"
	typeRate    = "rate_limit_error"
)

// errorTypes are OpenAI's types of errors, by status. Others are typeInvalid and, of a server,
// server_error.
var errorTypes = map[int]string{
	http.StatusUnauthorized:    "authentication_error",
	http.StatusForbidden:       "permission_error",
	http.StatusTooManyRequests: typeRate,
}

const codeMissing = "missing_required_parameter"

// codes are those for which OpenAI has another name.
var codes = map[string]string{
	"prompt_too_long":      "context_length_exceeded",
	"model_refused":        reader.CodeValue, // the provider says that the request is wrong
	"model_rate_limited":   "rate_limit_exceeded",
	"rate_limited":         "rate_limit_exceeded",
	"too_many_replies":     "rate_limit_exceeded",
	"too_many_streams":     "rate_limit_exceeded",
	"unknown_model":        "model_not_found",
	"invalid_key":          "invalid_api_key",
	"missing_key":          "invalid_api_key",
	reader.CodeMissing:     codeMissing,
	"missing_body":         codeMissing,
	"missing_tool_call_id": codeMissing,
	reader.CodeType:        "invalid_type",
	"invalid_role":         reader.CodeValue,
	"invalid_content":      reader.CodeValue,
	"empty_content":        reader.CodeValue,
	"invalid_tool_calls":   reader.CodeValue,
	"invalid_parameter":    reader.CodeValue,
	"invalid_limit":        reader.CodeValue,
}

// NewError returns an error of this status and code. field names the member of the
// request that is wrong; "" for none.
func NewError(status int, code, field, detail string) ErrorBody {
	e := ErrorBody{Message: detail, Type: errorTypes[status]}
	switch {
	case e.Type != "":
	case status < http.StatusInternalServerError:
		e.Type = typeInvalid
	default:
		e.Type = "server_error"
	}
	if other, ok := codes[code]; ok {
		code = other
	}
	if field != "" {
		e.Param = &field
	}
	if code != "" {
		e.Code = &code
	}
	return e
}

// failure is the code of an error of a Response, which knows few.
func (e ErrorBody) failure() string {
	switch e.Type {
	case typeRate:
		return "rate_limit_exceeded"
	case typeInvalid:
		return "invalid_prompt"
	}
	return "server_error"
}
