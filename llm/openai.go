package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/packages/ssestream"
)

const (
	defaultBaseURL        = "https://api.openai.com/v1"
	defaultMaxAnswerBytes = 4 << 20

	// streamOverhead is how many bytes of a stream may carry one byte of the
	// answer. A chunk of one short token takes some 350 bytes.
	streamOverhead = 64

	// finishGrace is how long a stream that told its finish reason may take to
	// send the count of tokens and to end. Some servers leave it open.
	finishGrace = 2 * time.Second

	checkBaseURL = "check the base URL, which usually ends in /v1"
)

// OpenAIConfig says which model to call, and how.
type OpenAIConfig struct {
	// BaseURL is the address to which "/chat/completions" is added, such as
	// "http://localhost:11434/v1". "" is OpenAI's own address. A user name,
	// query or fragment is refused, because a key belongs into APIKey.
	BaseURL string

	APIKey string // "" for a server that wants none
	Model  string // as the server names it

	// HTTPClient makes the connections; nil is a client that keeps the
	// connections of many calls for the calls that follow. If the
	// client has a timeout, the timeout also ends streams. Redirects aren't
	// followed, so that key and messages go nowhere but to BaseURL.
	HTTPClient *http.Client

	// MaxAnswerBytes bounds an answer; 0 is 4 MiB, and the most is 1 GiB. A
	// longer answer is cut off with ErrAnswerTooLong, so that an endless answer
	// can't fill memory.
	MaxAnswerBytes int

	// LegacyFields sends max_tokens in place of max_completion_tokens, and no
	// stream_options, because some compatible servers refuse or ignore the
	// newer fields. Set it only for a server that needs it: OpenAI's own
	// reasoning models refuse max_tokens, and a stream without stream_options
	// doesn't count its tokens.
	LegacyFields bool

	// Families says which models refuse a temperature. nil is KnownFamilies.
	Families Families

	// Params are members of each request that doesn't set them itself, such as
	// top_k. They are those that Request.Extra may have.
	Params map[string]json.RawMessage
}

// An OpenAI is a model behind OpenAI's chat completions, or behind a compatible
// server.
type OpenAI struct {
	model            string
	maxAnswer        int
	legacyFields     bool
	fixedTemperature bool
	base             *url.URL
	url, key         string
	http             http.Client
	params           map[string]json.RawMessage
	unknown          sync.Map     // hints that its provider doesn't know
	form             atomic.Int32 // a form: how its chat template takes messages, as far as is known
	functions        atomic.Bool  // it knows no custom tools, as far as is known
}

// NewOpenAI returns a client. It doesn't connect.
func NewOpenAI(config OpenAIConfig) (*OpenAI, error) {
	base, err := url.Parse(config.BaseURL)
	switch {
	case config.Model == "":
		return nil, errors.New("no model is named")
	case config.MaxAnswerBytes < 0 || config.MaxAnswerBytes > 1<<30:
		return nil, fmt.Errorf("MaxAnswerBytes is %d; it goes from 1 to 1 GiB, and 0 is 4 MiB", config.MaxAnswerBytes)
	case config.BaseURL == "":
		base, _ = url.Parse(defaultBaseURL)
	case err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "":
		// The URL isn't quoted: it may hold a password.
		return nil, errors.New("the base URL must look like https://host/v1, without user name, query and fragment")
	}
	families := config.Families
	if families == nil {
		families = known
	}
	family, _ := families.Find(config.Model)
	c := &OpenAI{
		model:            config.Model,
		maxAnswer:        config.MaxAnswerBytes,
		legacyFields:     config.LegacyFields,
		params:           config.Params,
		fixedTemperature: family.FixedTemperature,
	}
	c.functions.Store(!family.CustomTools)
	if family.AlternatesRoles {
		c.form.Store(int32(formTurns))
	}
	if c.maxAnswer == 0 {
		c.maxAnswer = defaultMaxAnswerBytes
	}
	c.base, c.url, c.key = base, base.JoinPath("chat/completions").String(), config.APIKey
	c.http.Transport = connections()
	if config.HTTPClient != nil {
		c.http = *config.HTTPClient
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// maxIdle is how many connections to one server are kept for later calls.
// net/http keeps 2, so that of 200 streams at once 198 would connect anew.
const maxIdle = 256

// connections are shared by all clients that bring none.
var connections = sync.OnceValue(func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, maxIdle
	return t
})

// Name returns the configured model.
func (c *OpenAI) Name() string { return c.model }

// Complete implements Model.
func (c *OpenAI) Complete(ctx context.Context, req Request) (Response, error) {
	a := answer{limit: c.maxAnswer}
	err := c.complete(ctx, req, &a)
	return c.result(ctx, req, &a, err)
}

func (c *OpenAI) complete(ctx context.Context, req Request, a *answer) error {
	res, err := c.post(ctx, req, a, false)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if kind := contentType(res); !isJSON(kind) {
		return wrongType(res, kind)
	}
	return readWhole(res.Body, a)
}

// Stream implements Model. If a server can't stream and answers with one JSON
// object, there is one Delta.
func (c *OpenAI) Stream(ctx context.Context, req Request, each func(Delta) error) (Response, error) {
	a := answer{limit: c.maxAnswer}
	a.each = func(d Delta) error {
		if err := each(d); err != nil {
			return &callerError{err}
		}
		return nil
	}
	err := c.stream(ctx, req, &a)
	return c.result(ctx, req, &a, err)
}

func (c *OpenAI) stream(ctx context.Context, req Request, a *answer) (err error) {
	reading, stop := context.WithCancel(ctx)
	res, err := c.post(reading, req, a, true)
	if err != nil {
		stop()
		return err
	}
	defer func() { leave(res.Body, stop, err == nil) }()
	switch kind := contentType(res); {
	case kind == "text/event-stream":
		res.Body = &limitedBody{ReadCloser: res.Body, left: a.limit * streamOverhead}
		err = readEvents(ctx, stop, ssestream.NewDecoder(res), a)
	case isJSON(kind):
		err = readWhole(res.Body, a)
	default:
		err = wrongType(res, kind)
	}
	return err
}

// What comes after the end of a stream may take leaveTime and have leaveBytes.
const (
	leaveTime  = 100 * time.Millisecond
	leaveBytes = 64 << 10
)

// leave closes the body of a stream. One that ended well is first read until
// nothing more comes, beside the caller: only then does its connection serve
// another call.
func leave(body io.ReadCloser, stop func(), well bool) {
	if !well {
		body.Close()
		stop()
		return
	}
	go func() {
		defer stop()
		defer body.Close()
		defer time.AfterFunc(leaveTime, stop).Stop()
		_, _ = io.Copy(io.Discard, io.LimitReader(body, leaveBytes))
	}()
}

// post sends a request, once: the caller counts the attempts. The response is
// one of HTTP 200, its body unread; every other status is an error. A model whose
// template refuses the roles gets them by turns at once, and from then on; a provider
// that knows no custom tools gets functions. One that doesn't know a hint gets the
// request without it.
func (c *OpenAI) post(ctx context.Context, req Request, a *answer, stream bool) (*http.Response, error) {
	f, functions := form(c.form.Load()), c.functions.Load()
	sent := req
	if functions {
		sent, a.custom = asFunctions(req)
	}
	body, err := c.encode(f.of(sent), stream)
	if err != nil {
		return nil, err
	}
	res, err := c.send(ctx, c.url, body)
	var e *Error
	if errors.As(err, &e) && e.wants > f {
		c.form.Store(int32(e.wants))
		return c.post(ctx, req, a, stream)
	}
	if e != nil && e.tools && !functions && hasCustom(req) {
		c.functions.Store(true)
		again, refused := c.post(ctx, req, a, stream)
		if errors.Is(refused, ErrInvalid) { // for something else
			c.functions.Store(false)
		}
		return again, refused
	}
	if e != nil && req.Extra[e.hint] != nil {
		c.unknown.Store(e.hint, true)
		req.Extra = maps.Clone(req.Extra)
		delete(req.Extra, e.hint)
		return c.post(ctx, req, a, stream)
	}
	return res, err
}

// send posts a body to an address of the server.
func (c *OpenAI) send(ctx context.Context, url string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, failed(ErrInvalid, "the base URL makes no request")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	return c.do(r)
}

// do sends a request under the key. A response is one of HTTP 200.
func (c *OpenAI) do(r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", "coppice")
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	res, err := c.http.Do(r)
	if err != nil || res.StatusCode == http.StatusOK {
		return res, err
	}
	return nil, refused(r.Context(), res)
}

// result is what a call returns: what was read, and err as one of this
// package's errors.
func (c *OpenAI) result(ctx context.Context, req Request, a *answer, err error) (Response, error) {
	var (
		caller *callerError
		typed  *Error
	)
	if !errors.As(err, &caller) {
		if more := a.finished(); err == nil {
			err = more
		}
	}
	if err == nil {
		err = a.check()
	}
	res := a.response(c.model, err == nil)
	switch {
	case err == nil:
		return res, nil
	case errors.As(err, &caller):
		return res, caller.err
	case errors.As(err, &typed): // says more than the context does
	default:
		if typed = ended(ctx); typed == nil {
			typed = broken(err)
		}
	}
	typed.Model = c.model
	withReason(typed, c.key, slices.AppendSeq(slices.Clone(req.Messages), maps.Values(req.Extra)))
	return res, typed
}

// A callerError is an error of the function that a stream calls for each piece.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

// contentType is a response's media type. A response without one passes for
// JSON: if it isn't, reading it says so.
func contentType(res *http.Response) string {
	header := res.Header.Get("Content-Type")
	if header == "" {
		return "application/json"
	}
	kind, _, err := mime.ParseMediaType(header)
	if err != nil {
		return "an unreadable type"
	}
	return kind
}

func isJSON(kind string) bool {
	return kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}

func wrongType(res *http.Response, kind string) error {
	what := "something else"
	if kind == "text/html" {
		what = "a web page"
	}
	return &Error{Kind: ErrBadResponse, Status: res.StatusCode, Detail: "the server sent " + what + ", and no chat completion; " + checkBaseURL}
}

// A limitedBody fails once more than its bytes are read.
type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooMuch
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
