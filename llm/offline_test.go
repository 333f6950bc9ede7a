package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
)

func TestOffline(t *testing.T) {
	t.Parallel()
	const what = "I am the offline model: no language model is set up, so nobody understood this. I was given "
	system := json.RawMessage(`{"role":"system","content":"s"}`)
	answer := json.RawMessage(`{"role":"assistant","content":"earlier"}`)
	for name, test := range map[string]struct {
		messages []json.RawMessage
		want     string
	}{
		"one":        {[]json.RawMessage{user("Hi there")}, "1 message. You said: “Hi there”"},
		"the last":   {[]json.RawMessage{system, user("first"), answer, user("second\n\n  line")}, "4 messages. You said: “second line”"},
		"an image":   {[]json.RawMessage{json.RawMessage(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}`)}, "1 message. Your last message has no text."},
		"no user":    {[]json.RawMessage{system}, "1 message. None of them is yours."},
		"long":       {[]json.RawMessage{user(strings.Repeat("é", 500))}, "1 message. You said: “" + strings.Repeat("é", 280) + "…”"},
		"NUL":        {[]json.RawMessage{user("a\x00b")}, "1 message. You said: “ab”"},
		"unreadable": {[]json.RawMessage{user("ok"), json.RawMessage(`{`)}, "2 messages. You said: “ok”"},
	} {
		for mode, call := range modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				m := llm.Offline(0)
				res := check.Must(call(t, m, context.Background(), llm.Request{Messages: test.messages}))(t)
				content, _ := json.Marshal(what + test.want)
				check.That(t, res.Text == what+test.want && string(res.Message) == `{"role":"assistant","content":`+string(content)+`}`,
					"%q, message %s", res.Text, res.Message)
				check.That(t, m.Name() == "offline" && res.Model == "offline" && res.FinishReason == "stop", "%+v", res)
			})
		}
	}
}

func TestOfflineStops(t *testing.T) {
	t.Parallel()
	req := request()
	for mode, call := range modes {
		_, err := call(t, llm.Offline(0), context.Background(), llm.Request{})
		wantError(t, err, llm.ErrInvalid)
		res, err := call(t, llm.Offline(time.Hour), deadline(t, 20*time.Millisecond), req)
		wantError(t, err, llm.ErrTimeout)
		check.That(t, res.Message == nil, "%s: %s", mode, res.Message)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = call(t, llm.Offline(0), ctx, req)
		wantError(t, err, llm.ErrCanceled)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	words := 0
	res, err := llm.Offline(time.Microsecond).Stream(ctx, req, func(llm.Delta) error {
		if words++; words == 4 {
			cancel()
		}
		return nil
	})
	wantError(t, err, llm.ErrCanceled)
	check.That(t, res.Text == "I am the offline " && res.FinishReason == "", "%+v", res)
	enough := fmt.Errorf("enough")
	check.Fails(llm.Offline(0).Stream(context.Background(), req, func(llm.Delta) error { return enough }))(t, "the caller's error", enough)
}
