package wire

import (
	"encoding/json"
	"net/http"

	"github.com/coppice-chat/coppice/fault"
)

// A Refusal is an error in the form of OpenAI's clients.
type Refusal struct {
	Status int
	Retry  bool // the same request may go well later. Where it can't, the answer says x-should-retry: false
	Body   ErrorBody
}

// An ErrorBody says what is wrong, in OpenAI's envelope.
type ErrorBody struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// JSON returns the body of the error answer.
func (r Refusal) JSON() json.RawMessage {
	return Marshal(map[string]ErrorBody{"error": r.Body})
}

// Types of error.
const (
	typeInvalid    = "invalid_request_error"
	typeAuth       = "authentication_error"
	typePermission = "permission_error"
	typeRate       = "rate_limit_error"
	typeServer     = "server_error"
)

// kinds say how OpenAI's clients are told of each kind of error. Every SDK tries
// again after 408, 409, 429 and what is over 499, unless told otherwise.
var kinds = []struct {
	kind   fault.Kind
	status int
	typ    string
	retry  bool
}{
	{fault.Invalid, http.StatusBadRequest, typeInvalid, false},
	{fault.Unauthorized, http.StatusUnauthorized, typeAuth, false},
	{fault.Full, http.StatusForbidden, typePermission, false},
	{fault.NotFound, http.StatusNotFound, typeInvalid, false},
	{fault.Conflict, http.StatusConflict, typeInvalid, false},
	{fault.TooLarge, http.StatusRequestEntityTooLarge, typeInvalid, false},
	{fault.TooMany, http.StatusTooManyRequests, typeRate, true},
	{fault.ModelBusy, http.StatusTooManyRequests, typeRate, true},
	{fault.Internal, http.StatusInternalServerError, typeServer, true},
	{fault.Permanent, http.StatusInternalServerError, typeServer, false},
	{fault.Model, http.StatusBadGateway, typeServer, true},
	{fault.Unavailable, http.StatusServiceUnavailable, typeServer, true},
	{fault.Timeout, http.StatusServiceUnavailable, typeServer, true},
	{fault.ModelTimeout, http.StatusGatewayTimeout, typeServer, true},
	{fault.Canceled, 499, typeServer, false},
}

// codes are those for which OpenAI has another name, or another kind.
var codes = map[string]struct {
	code string
	kind fault.Kind // "" leaves it
}{
	"prompt_too_long":      {"context_length_exceeded", fault.Invalid},
	"model_refused":        {CodeValue, fault.Invalid}, // the provider says that the request is wrong
	"model_not_authorized": {"model_not_authorized", fault.Permanent},
	"answer_too_long":      {"answer_too_long", fault.Permanent},
	"model_rate_limited":   {"rate_limit_exceeded", fault.ModelBusy},
	"rate_limited":         {"rate_limit_exceeded", ""},
	"too_many_replies":     {"rate_limit_exceeded", ""},
	"too_many_streams":     {"rate_limit_exceeded", ""},
	"unknown_model":        {"model_not_found", fault.NotFound},
	"invalid_key":          {"invalid_api_key", ""},
	"missing_key":          {"invalid_api_key", ""},
	"missing_field":        {CodeMissing, ""},
	"missing_body":         {CodeMissing, ""},
	"missing_tool_call_id": {CodeMissing, ""},
	"wrong_type":           {codeType, ""},
	"invalid_role":         {CodeValue, ""},
	"invalid_content":      {CodeValue, ""},
	"empty_content":        {CodeValue, ""},
	"invalid_tool_calls":   {CodeValue, ""},
	"invalid_parameter":    {CodeValue, ""},
	"invalid_limit":        {CodeValue, ""},
}

// Refuse returns the answer to an error. The error's cause is for the log only.
func Refuse(err error) Refusal {
	e := fault.Of(err)
	if e == nil {
		e = &fault.Error{Kind: fault.Internal}
	}
	for _, k := range kinds {
		if k.kind == e.Kind && (e.Code != "" || e.Detail != "") {
			return refusal(e.Kind, k.status, e.Code, e.Field, e.Detail)
		}
	}
	switch e.Kind {
	case fault.Canceled:
		return refusal(e.Kind, 0, "request_canceled", "", "The client went away.")
	case fault.Timeout:
		return refusal(e.Kind, 0, "timeout", "", "The request took too long and was given up.")
	}
	return refusal(fault.Internal, 0, "internal_error", "", "Something broke in the server. Its log tells more under the x-request-id of this answer.")
}

// RefuseStatus returns the answer to an error whose status is known, but whose
// kind isn't.
func RefuseStatus(status int, code, field, detail string) Refusal {
	for _, k := range kinds {
		if k.status == status {
			return refusal(k.kind, status, code, field, detail)
		}
	}
	kind := fault.Invalid
	if status >= http.StatusInternalServerError {
		kind = fault.Internal
	}
	r := refusal(kind, status, code, field, detail)
	r.Status = status
	return r
}

func refusal(kind fault.Kind, status int, code, field, detail string) Refusal {
	if other, ok := codes[code]; ok {
		code = other.code
		if other.kind != "" {
			kind, status = other.kind, 0
		}
	}
	r := Refusal{Status: status, Body: ErrorBody{Message: detail}}
	for _, k := range kinds {
		if k.kind == kind {
			r.Status, r.Retry, r.Body.Type = k.status, k.retry, k.typ
			break
		}
	}
	if field != "" {
		r.Body.Param = &field
	}
	if code != "" {
		r.Body.Code = &code
	}
	return r
}

// A ResponseError says why a Response failed.
type ResponseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// failure is err as a Response tells it, by the few codes that it knows.
func failure(err error) *ResponseError {
	r := Refuse(err)
	code := "server_error"
	switch r.Status {
	case http.StatusTooManyRequests:
		code = "rate_limit_exceeded"
	case http.StatusBadRequest:
		code = "invalid_prompt"
	}
	return &ResponseError{code, r.Body.Message}
}
