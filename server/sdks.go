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

// ForSDKs returns the problem with the status that SDKs act by.
func (p Problem) ForSDKs() Problem {
	if status, ok := sdkStatuses[p.Code]; ok {
		p.Status = status
	}
	return p
}

// RefuseSDKs makes an API's Refuse for clients that are SDKs of OpenAI or Anthropic.
// form writes a problem of ForSDKs in the API's form.
func RefuseSDKs(form func(Problem) []byte) func(Problem, http.Header) (status int, body []byte) {
	return func(p Problem, h http.Header) (int, []byte) {
		p = p.ForSDKs()
		h.Set("Content-Type", "application/json")
		if again := p.Status == http.StatusTooManyRequests || p.Status >= http.StatusInternalServerError; !again || sdkFinal[p.Code] {
			h.Set("X-Should-Retry", "false")
		}
		return p.Status, form(p)
	}
}
