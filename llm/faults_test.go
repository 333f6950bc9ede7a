package llm_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	const text = "One half of this text comes, the other doesn't."
	const half = "One half of this text c"
	json := func(status int, code, kind, message string) llmtest.Behaviour {
		return llmtest.FailWith(llmtest.Failure{Status: status, Code: code, Type: kind, Message: message + " " + secret + " " + key})
	}
	for name, test := range map[string]struct {
		does    llmtest.Behaviour
		kind    error
		status  int
		code    string
		wait    time.Duration
		partial string // what of a stream came
	}{
		"401":                    {does: llmtest.Fail(401), kind: llm.ErrAuth, status: 401, code: "invalid_api_key"},
		"402":                    {does: llmtest.Fail(402), kind: llm.ErrAuth, status: 402, code: "invalid_request_error"},
		"403":                    {does: llmtest.Fail(403), kind: llm.ErrAuth, status: 403, code: "invalid_request_error"},
		"400":                    {does: llmtest.Fail(400), kind: llm.ErrInvalid, status: 400, code: "invalid_request_error"},
		"404":                    {does: llmtest.Fail(404), kind: llm.ErrInvalid, status: 404, code: "invalid_request_error"},
		"422":                    {does: llmtest.Fail(422), kind: llm.ErrInvalid, status: 422, code: "invalid_request_error"},
		"no temperature":         {does: llmtest.Raw(400, "application/json", `{"error":{"message":"`+secret+`","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`), kind: llm.ErrInvalid, status: 400, code: "unsupported_value"},
		"429":                    {does: llmtest.Fail(429), kind: llm.ErrRateLimited, status: 429, code: "rate_limit_exceeded", wait: time.Second},
		"quota":                  {does: json(429, "insufficient_quota", "insufficient_quota", ""), kind: llm.ErrRateLimited, status: 429, code: "insufficient_quota"},
		"500":                    {does: llmtest.Fail(500), kind: llm.ErrUnavailable, status: 500, code: "server_error"},
		"503":                    {does: llmtest.Fail(503), kind: llm.ErrUnavailable, status: 503, code: "server_error"},
		"503 as text":            {does: llmtest.FailWith(llmtest.Failure{Status: 503, Message: secret, NotJSON: true}), kind: llm.ErrUnavailable, status: 503},
		"500 of unknown length":  {does: llmtest.FailWith(llmtest.Failure{Status: 500, Message: llmtest.Text(200_000), UnknownLength: true}), kind: llm.ErrUnavailable, status: 500},
		"408":                    {does: llmtest.Fail(408), kind: llm.ErrUnavailable, status: 408, code: "invalid_request_error"},
		"an error as a string":   {does: llmtest.Raw(500, "application/json", `{"error":"`+secret+`"}`), kind: llm.ErrUnavailable, status: 500},
		"a bare error object":    {does: llmtest.Raw(429, "application/json", `{"object":"error","message":"`+secret+`","type":"TooManyRequestsError","code":429}`), kind: llm.ErrRateLimited, status: 429, code: "TooManyRequestsError"},
		"a code that is no code": {does: json(400, "sk-test-9f3c1a77b2", secret, ""), kind: llm.ErrInvalid, status: 400},
		"too long":               {does: llmtest.TooLong(), kind: llm.ErrPromptTooLong, status: 400, code: "context_length_exceeded"},
		"too long for vLLM":      {does: json(400, "400", "BadRequestError", "However, the model's context length is only 1024 tokens"), kind: llm.ErrPromptTooLong, status: 400, code: "BadRequestError"},
		"too long for llama.cpp": {does: json(400, "400", "exceed_context_size_error", ""), kind: llm.ErrPromptTooLong, status: 400, code: "exceed_context_size_error"},
		"too long for a proxy":   {does: json(413, "", "", ""), kind: llm.ErrPromptTooLong, status: 413},
		"too long for the quota": {does: json(429, "rate_limit_exceeded", "tokens", "Request too large: context length"), kind: llm.ErrRateLimited, status: 429, code: "rate_limit_exceeded"},
		"204":                    {does: llmtest.Raw(204, "application/json", ""), kind: llm.ErrBadResponse, status: 204},
		"redirect":               {does: llmtest.Raw(302, "text/html", ""), kind: llm.ErrBadResponse, status: 302},

		"cut":               {does: llmtest.CutConnection(), kind: llm.ErrUnavailable},
		"cut midway":        {does: llmtest.CutMidway(text), kind: llm.ErrUnavailable, partial: half},
		"failure midway":    {does: llmtest.FailMidway(text), kind: llm.ErrUnavailable, code: "server_error", partial: half},
		"empty":             {does: llmtest.Empty(), kind: llm.ErrBadResponse},
		"no choices":        {does: llmtest.NoChoices(), kind: llm.ErrBadResponse},
		"invalid JSON":      {does: llmtest.InvalidJSON(), kind: llm.ErrBadResponse},
		"a web page":        {does: llmtest.WrongContentType(), kind: llm.ErrBadResponse, status: 200},
		"an unreadable one": {does: llmtest.Raw(200, "te xt;;", key), kind: llm.ErrBadResponse, status: 200},
		"no list":           {does: llmtest.Raw(200, "application/json", `{"choices":3}`), kind: llm.ErrBadResponse},
		"no content":        {does: llmtest.Raw(200, "application/json", `{"choices":[{"message":{"content":3}}]}`), kind: llm.ErrBadResponse},
		"calls of no shape": {does: llmtest.Raw(200, "application/json", `{"choices":[{"message":{"tool_calls":{}}}]}`), kind: llm.ErrBadResponse},
		"a call of no tool": {does: llmtest.CallTools(llmtest.ToolCall{ID: "a", Arguments: "{}"}), kind: llm.ErrBadResponse},
		"endless":           {does: llmtest.Endless(), kind: llm.ErrAnswerTooLong, partial: "some"},
		"endless silence":   {does: llmtest.EndlessSilence(), kind: llm.ErrAnswerTooLong},
		"over the limit":    {does: llmtest.Answer(llmtest.Text(100_000)), kind: llm.ErrAnswerTooLong, partial: "some"},
	} {
		for mode, call := range modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				s := llmtest.NewServer(t, test.does)
				c := client(t, s, func(config *llm.OpenAIConfig) { config.MaxAnswerBytes = 64 << 10 })
				res, err := call(t, c, deadline(t, timeout), request())
				e := wantError(t, err, test.kind)
				check.That(t, e.Status == test.status && e.Code == test.code && e.RetryAfter == test.wait,
					"status %d, code %q, retry after %v: %v", e.Status, e.Code, e.RetryAfter, err)
				wantPartial(t, res, mode, test.partial)
				check.Equal(t, "requests", len(s.Requests()), 1)
			})
		}
	}
}

// wantPartial checks what a failed call still says: of a stream the text that
// came, "some" being any, and of a whole answer nothing.
func wantPartial(t *testing.T, res llm.Response, mode, partial string) {
	t.Helper()
	if mode != "stream" {
		partial = ""
	}
	if partial == "some" && res.Text != "" {
		partial = res.Text
	}
	check.That(t, res.Text == partial && (res.Message != nil) == (partial != ""),
		"the response beside the error has text %.80q and message %.80s; want %.80q", res.Text, res.Message, partial)
}

// An answer without a byte is no JSON, and a stream with no end.
func TestNoBody(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]error{"complete": llm.ErrBadResponse, "stream": llm.ErrUnavailable} {
		kind := map[string]string{"complete": "application/json", "stream": "text/event-stream"}[mode]
		_, err := modes[mode](t, client(t, llmtest.NewServer(t, llmtest.Raw(200, kind, ""))), deadline(t, timeout), request())
		wantError(t, err, want)
	}
}

// An empty answer still cost something, and its finish reason says why.
func TestEmptyAnswerSaysWhatItCost(t *testing.T) {
	t.Parallel()
	for mode, call := range modes {
		s := llmtest.NewServer(t, llmtest.Truncated(""))
		res, err := call(t, client(t, s), deadline(t, timeout), request())
		e := wantError(t, err, llm.ErrBadResponse)
		check.That(t, res.FinishReason == "length" && res.PromptTokens == 7 && e.Detail == "the answer is empty, and its finish reason is length",
			"%s: %+v, %v", mode, res, err)
	}
}

// A server, or what stands before it, may hang anywhere.
func TestHangs(t *testing.T) {
	t.Parallel()
	const text = "One half of this text comes, the other doesn't."
	stages := map[string]struct {
		does    llmtest.Behaviour
		partial string
	}{
		"before the headers": {does: llmtest.Hang()},
		"midway":             {does: llmtest.HangMidway(text), partial: "One half of this text c"},
	}
	ends := map[string]struct {
		kind, cause error
		ctx         func(t *testing.T) context.Context
	}{
		"deadline": {llm.ErrTimeout, context.DeadlineExceeded, func(t *testing.T) context.Context { return deadline(t, 100*time.Millisecond) }},
		"canceled": {llm.ErrCanceled, context.Canceled, func(t *testing.T) context.Context {
			ctx, cancel := context.WithCancel(context.Background())
			timer := time.AfterFunc(100*time.Millisecond, cancel)
			t.Cleanup(func() { timer.Stop(); cancel() })
			return ctx
		}},
	}
	for stage, where := range stages {
		for end, how := range ends {
			for mode, call := range modes {
				t.Run(stage+"/"+end+"/"+mode, func(t *testing.T) {
					t.Parallel()
					s := llmtest.NewServer(t, where.does)
					c := client(t, s)
					res, err := call(t, c, how.ctx(t), request())
					wantError(t, err, how.kind)
					check.Fails(res, err)(t, "the cause", how.cause)
					// A slow machine may not have got that far in 100 ms.
					check.That(t, strings.HasPrefix(where.partial, res.Text), "text %q", res.Text)
					wantPartial(t, res, mode, res.Text)
				})
			}
		}
	}
}

// The HTTP client's own timeout is a timeout, too.
func TestClientTimeout(t *testing.T) {
	t.Parallel()
	for mode, call := range modes {
		s := llmtest.NewServer(t, llmtest.Hang())
		c := client(t, s, func(config *llm.OpenAIConfig) {
			hasty := *config.HTTPClient
			hasty.Timeout = 50 * time.Millisecond
			config.HTTPClient = &hasty
		})
		_, err := call(t, c, deadline(t, timeout), request())
		check.Equal(t, mode, wantError(t, err, llm.ErrTimeout).Err, context.DeadlineExceeded)
	}
}

func TestNoConnection(t *testing.T) {
	t.Parallel()
	listener := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := listener.Addr().String()
	_ = listener.Close() // nobody listens there now
	plain := llmtest.NewServer(t)
	for name, test := range map[string]struct {
		base, detail string
		dial         func(context.Context, string, string) (net.Conn, error)
	}{
		"refused": {"http://" + address + "/v1", "no connection to the server: connection refused; check the base URL, and whether the server runs", nil},
		"no such host": {"http://nowhere.invalid/v1", "the server's host name has no address; check the base URL", func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "nowhere.invalid", IsNotFound: true}}
		}},
		"no TLS": {strings.Replace(plain.URL(), "http:", "https:", 1), "the connection broke before the answer was whole", nil},
	} {
		for mode, call := range modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				transport := &http.Transport{DialContext: test.dial}
				t.Cleanup(transport.CloseIdleConnections)
				c, err := llm.NewOpenAI(llm.OpenAIConfig{BaseURL: test.base, APIKey: key, Model: "m", HTTPClient: &http.Client{Transport: transport}})
				check.NoError(t, err)
				_, err = call(t, c, deadline(t, timeout), request())
				check.Equal(t, "the detail", wantError(t, err, llm.ErrUnavailable).Detail, test.detail)
			})
		}
	}
}

// A redirect would carry the key and the messages elsewhere.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := llmtest.NewServer(t) // a request would fail the test
	s := llmtest.NewServer(t, llmtest.Answer("never"))
	c := client(t, s, func(config *llm.OpenAIConfig) {
		config.HTTPClient = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 307, Header: http.Header{"Location": {elsewhere.URL() + "/chat/completions"}}, Body: http.NoBody, Request: r}, nil
		})}
	})
	_, err := c.Complete(deadline(t, timeout), request())
	wantError(t, err, llm.ErrBadResponse)
}

// A breaker that fails three times in a row, or hangs twice, lets one call through at a time, after
// pauses that grow or are asked for. An answer closes it. Two that share a trial try one at a time.
func TestBreaker(t *testing.T) {
	t.Parallel()
	var (
		trial   atomic.Bool
		now     = time.Now()
		clock   = func() time.Time { return now }
		b       = llm.NewBreaker(&trial, clock)
		down    = &llm.Error{Kind: llm.ErrUnavailable}
		slow    = &llm.Error{Kind: llm.ErrTimeout, Err: context.DeadlineExceeded}
		gaveUp  = &llm.Error{Kind: llm.ErrCanceled, Err: context.Canceled}
		answers = []error{nil, &llm.Error{Kind: llm.ErrPromptTooLong}, &llm.Error{Kind: llm.ErrInvalid}}
	)
	call := func(err error) bool {
		t.Helper()
		done, spared := b.Enter()
		if spared != nil {
			return false
		}
		done(err)
		return true
	}
	for _, answer := range answers {
		for _, err := range []error{down, down, answer, down, down, gaveUp, down} {
			check.Need(t, call(err), "it is open before %v", err)
		}
		for i, pause := range []time.Duration{5, 10, 20, 40, 60, 60} {
			var spared *llm.SparedError
			if _, err := b.Enter(); !errors.As(err, &spared) || spared.Left != pause*time.Second || b.Spares() != spared.Left {
				t.Fatalf("pause %d is %v, want %d s", i, err, pause)
			}
			now = now.Add(pause * time.Second)
			check.Need(t, i == 5 || call(down), "after pause %d no call is let through", i)
		}
		done := check.Must(b.Enter())(t)
		check.That(t, !call(nil), "two calls try at once whether the model is back")
		done(context.Canceled) // which says nothing
		for range 2 {
			check.That(t, call(answer) && b.Spares() == 0, "a call that is answered doesn't close it")
		}
	}
	other := llm.NewBreaker(&trial, clock)
	for range 2 {
		done := check.Must(other.Enter())(t)
		done(slow)
		call(&llm.Error{Kind: llm.ErrRateLimited, RetryAfter: time.Hour})
	}
	call(slow)
	check.Equal(t, "how long calls that hang spare", other.Spares(), 10*time.Second)
	check.Equal(t, "and those of which one does", b.Spares(), other.Spares())
	now = now.Add(time.Minute)
	done := check.Must(other.Enter())(t)
	check.That(t, !call(nil), "two models are tried at once")
	done(nil)
	if !call(&llm.Error{Kind: llm.ErrRateLimited, RetryAfter: time.Hour}) || b.Spares() != time.Minute {
		t.Errorf("a provider that asks for an hour is spared for %s", b.Spares())
	}
	if done, err := (*llm.Breaker)(nil).Enter(); err != nil {
		t.Error(err)
	} else {
		done(down)
	}
}
