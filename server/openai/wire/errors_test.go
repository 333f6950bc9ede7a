package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
)

func TestRefuse(t *testing.T) {
	t.Parallel()
	_, badRole := chat.Parse([]byte(`{"role":"robot"}`))
	var table strings.Builder
	for _, err := range []error{
		NoPrevious("resp_x"), NoResponse("resp_x"), NoConversation("conv_x"), NoItem("msg_x"), badRole,
		fault.New(fault.Invalid, "prompt_too_long", "", "Too long."), fault.New(fault.Model, "prompt_too_long", "", "Too long."),
		fault.New(fault.Model, "model_refused", "", "No such tool."), fault.New(fault.Model, "model_not_authorized", "", "The key is bad."),
		fault.New(fault.Model, "model_unavailable", "", "It is away."), fault.New(fault.Model, "answer_too_long", "", "Too long."),
		fault.New(fault.ModelBusy, "model_rate_limited", "", "Later."), fault.New(fault.ModelTimeout, "model_timeout", "", "Too slow."),
		fault.New(fault.Invalid, "unknown_model", "model", "There is none."), fault.New(fault.Unauthorized, "invalid_key", "", "The key is bad."),
		fault.New(fault.TooMany, "too_many_replies", "", "Wait."), fault.New(fault.TooLarge, "body_too_large", "", "Too large."),
		fault.New(fault.Full, "too_many_messages", "", "Full."), fault.New(fault.Conflict, "id_conflict", "id", "Taken."),
		fault.New(fault.Unavailable, "database_unavailable", "", "Away."), fault.New(fault.Permanent, "", "", "Never."),
		&fault.Error{Kind: fault.Timeout}, context.Canceled, context.DeadlineExceeded, errors.New("secret"), fmt.Errorf("x: %w", NoItem("msg_y")),
	} {
		r := Refuse(err)
		fmt.Fprintf(&table, "%d retry=%t %s\n", r.Status, r.Retry, r.JSON())
		if strings.Contains(string(r.JSON()), "secret") {
			t.Errorf("%v is told", err)
		}
	}
	for _, status := range []int{400, 401, 403, 404, 405, 413, 415, 429, 500, 502, 503, 507} {
		r := RefuseStatus(status, "some_code", "", "So it is.")
		fmt.Fprintf(&table, "%d retry=%t %s\n", r.Status, r.Retry, r.JSON())
		if r.Status != status {
			t.Errorf("%d became %d", status, r.Status)
		}
	}
	golden(t, "errors.txt", table.String())
}

func TestFailure(t *testing.T) {
	t.Parallel()
	for code, err := range map[string]error{
		"server_error":        errors.New("x"),
		"rate_limit_exceeded": fault.New(fault.ModelBusy, "model_rate_limited", "", "Later."),
		"invalid_prompt":      fault.New(fault.Model, "prompt_too_long", "", "Too long."),
	} {
		if got := failure(err); got.Code != code || got.Message == "" {
			t.Errorf("%v is %+v, want %s", err, got, code)
		}
	}
	if got := failure(nil); got.Code != "server_error" {
		t.Errorf("%+v", got)
	}
}
