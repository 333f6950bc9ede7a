package server

import (
	"net/http"
	"testing"

	"github.com/coppice-chat/coppice/fault"
)

// TestRefuseSDKs holds by which status SDKs learn of an error, and when they may send
// the request again.
func TestRefuseSDKs(t *testing.T) {
	t.Parallel()
	refuse := RefuseSDKs(func(Problem) []byte { return nil })
	for code, test := range map[string]struct {
		kind   fault.Kind
		status int
		retry  bool
	}{
		"unknown_model": {fault.Invalid, 404, false}, "prompt_too_long": {fault.Model, 400, false}, "model_refused": {fault.Model, 400, false},
		"model_rate_limited": {fault.ModelBusy, 429, true}, "model_not_authorized": {fault.Model, 502, false}, "answer_too_long": {fault.Model, 502, false},
		"model_unavailable": {fault.Model, 502, true}, "model_timeout": {fault.ModelTimeout, 504, true}, "database_unavailable": {fault.Unavailable, 503, true},
		"id_conflict": {fault.Conflict, 409, false}, "request_canceled": {fault.Canceled, 499, false}, "rate_limited": {fault.TooMany, 429, true},
	} {
		h := http.Header{}
		status, _ := refuse(ProblemOf(fault.New(test.kind, code, "", "No.")), h)
		if retry := h.Get("X-Should-Retry") != "false"; status != test.status || retry != test.retry {
			t.Errorf("%s: %d, again %t", code, status, retry)
		}
	}
}
