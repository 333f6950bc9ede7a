package server

import "net/http"

// SDKs of OpenAI and Anthropic send a request again after 408, 409, 429 and every
// status over 499, unless the answer has x-should-retry: false. They know some errors by
// another status than that of REST.

// sdkStatuses are the statuses of codes that REST answers with another one.
var sdkStatuses = map[Code]int{
	CodeUnknownModel:     http.StatusNotFound,
	"prompt_too_long":    http.StatusBadRequest,
	"model_refused":      http.StatusBadRequest,
	"model_rate_limited": http.StatusTooManyRequests,
}

// sdkFinal are errors of a server that come again with the same request.
var sdkFinal = map[Code]bool{"model_not_authorized": true, "answer_too_long": true}

// ForSDKs returns what an error of their APIs says, with the status that SDKs act by.
// field is the member of the request that is wrong; "" for none.
func (p Problem) ForSDKs() (status int, code, field, detail string) {
	if status = p.Status; sdkStatuses[p.Code] != 0 {
		status = sdkStatuses[p.Code]
	}
	return status, string(p.Code), deref(p.Field), p.Detail
}

// RefuseSDKs makes an API's Refuse for clients that are SDKs of OpenAI or Anthropic.
// form writes a problem in the API's form.
func RefuseSDKs(form func(Problem) []byte) func(Problem, http.Header) (status int, body []byte) {
	return func(p Problem, h http.Header) (int, []byte) {
		status, _, _, _ := p.ForSDKs()
		h.Set("Content-Type", "application/json")
		if again := status == http.StatusTooManyRequests || status >= http.StatusInternalServerError; !again || sdkFinal[p.Code] {
			h.Set("X-Should-Retry", "false")
		}
		return status, form(p)
	}
}
