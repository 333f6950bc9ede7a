package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	maxErrorBytes = 64 << 10       // of an error's body
	maxRetryAfter = 24 * time.Hour // of what a provider may ask for
)

// refused reads the answer of a status that is not 200, and gives its error.
func refused(ctx context.Context, res *http.Response) error {
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes)) // the status alone says enough
	if err := ctx.Err(); err != nil {
		return err
	}
	return refusal(res.StatusCode, res.Header, parseFault(body))
}

// A fault is the error object of a provider. Its message may quote the prompt, and
// even the key: withReason shows the part of it that doesn't.
type fault struct {
	Type    string
	Code    string
	Param   string
	Message string
}

// parseFault reads {"error": {...}}, {"error": "..."}, {"detail": ...}, and the bare
// object that some servers send; Google sends it in an array. Plain text is the
// message. Of a web page nothing is read.
func parseFault(body []byte) fault {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var envelope struct{ Error, Detail json.RawMessage }
	if json.Unmarshal(body, &envelope) != nil {
		if len(body) > 0 && !strings.ContainsRune(`<{["`, rune(body[0])) {
			return fault{Message: string(body)}
		}
		return fault{Message: text(body)}
	}
	object := envelope.Error
	if len(object) == 0 {
		object = body
	}
	var members struct {
		Type, Code, Param, Message json.RawMessage
		Metadata                   struct{ Raw json.RawMessage } // of OpenRouter: what the provider behind it said
	}
	if json.Unmarshal(object, &members) != nil {
		return fault{Message: text(object)}
	}
	f := fault{Type: text(members.Type), Code: text(members.Code), Param: text(members.Param), Message: text(members.Message)}
	for _, more := range []json.RawMessage{members.Metadata.Raw, envelope.Detail} {
		said := text(more)
		if said == "" && len(more) > 0 && more[0] != 'n' {
			said = string(more)
		}
		f.Message = strings.TrimSpace(f.Message + " " + said)
	}
	return f
}

// text is a JSON string's text, or a number's digits; "" for all else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// refusal is the error of a status and fault. header may be nil.
func refusal(status int, header http.Header, f fault) *Error {
	e := &Error{Status: status, RetryAfter: retryAfter(header), said: f.Message}
	for _, code := range []string{f.Code, f.Type} {
		if isCode(code) {
			e.Code = code
			break
		}
	}
	switch {
	case takesNoneOf.MatchString(f.Message):
		e.Kind, e.Detail, e.wants = ErrInvalid, "the model's chat template takes no system message", formNoSystem
	case wantsTurns.MatchString(f.Message):
		e.Kind, e.Detail, e.wants = ErrInvalid, "the model's chat template takes user and assistant by turns only", formTurns
	case overflows(status, f):
		e.Kind, e.Detail = ErrPromptTooLong, "the messages don't fit the model's window"
	case status == http.StatusUnauthorized:
		e.Kind, e.Detail, e.said = ErrAuth, "the provider refused the API key", "" // which it may quote in part
	case status == http.StatusForbidden:
		e.Kind, e.Detail = ErrAuth, "the API key may not do this"
	case status == http.StatusPaymentRequired:
		e.Kind, e.Detail = ErrAuth, "the account has no credit"
	case status == http.StatusTooManyRequests && f.Code == "insufficient_quota":
		e.Kind, e.Detail = ErrRateLimited, "the account's quota is spent"
	case status == http.StatusTooManyRequests:
		e.Kind = ErrRateLimited
	case status == http.StatusNotFound && f.Message != "":
		e.Kind, e.Detail = ErrInvalid, "" // "try pulling it first" says more than we could
	case status == http.StatusNotFound:
		e.Kind, e.Detail = ErrInvalid, "there is no such model or address; check the model's name, and "+checkBaseURL
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly:
		e.Kind, e.Detail = ErrUnavailable, "the provider failed"
	case status >= 400 && f.Param == "temperature":
		e.Kind, e.Detail = ErrInvalid, "the model takes no temperature; add its family with FixedTemperature"
	case status >= 400:
		e.Kind, e.Detail, e.hint = ErrInvalid, "the provider refused the request", unknownHint(f)
		e.tools = aboutTools.MatchString(f.Param + " " + f.Message)
	default:
		e.Kind, e.Detail = ErrBadResponse, "the server sent no answer, or points elsewhere; "+checkBaseURL
	}
	return e
}

// streamed is the error of a fault that stands where an answer should: in the
// middle of a stream, or under HTTP 200. What status it would have had must be
// guessed.
func streamed(f fault) *Error {
	status, err := strconv.Atoi(f.Code)
	if err != nil || status < 400 || status > 599 {
		switch kind := f.Code + " " + f.Type; {
		case strings.Contains(kind, "rate_limit"), strings.Contains(kind, "insufficient_quota"):
			status = http.StatusTooManyRequests
		case strings.Contains(kind, "authentication"), strings.Contains(kind, "invalid_api_key"):
			status = http.StatusUnauthorized
		case strings.Contains(kind, "invalid_request"), strings.Contains(kind, "context"):
			status = http.StatusBadRequest
		default:
			status = http.StatusInternalServerError
		}
	}
	e := refusal(status, nil, f)
	e.Status = 0 // the one of HTTP was 200
	return e
}

// overflows tells whether the prompt was too long. Only some servers have a
// code for that; the words are those of vLLM, llama.cpp, Anthropic, Bedrock
// and Mistral.
func overflows(status int, f fault) bool {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return true
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
	default:
		return false
	}
	for _, code := range []string{f.Code, f.Type} {
		switch code {
		case "context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded", "request_too_large":
			return true
		}
	}
	message := strings.ToLower(f.Message)
	for _, words := range []string{"context length", "context size", "context window", "prompt is too long", "input is too long", "prompt too long", "too large for model"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// maxReason is how many characters of a provider's message are shown.
const maxReason = 300

// keyForm matches what looks like a key: the provider may quote one that isn't ours.
var keyForm = regexp.MustCompile(`(?i)\bbearer\s+\S+|\b(?:sk|pk|rk|gsk|key|xai|hf|ghp|aiza|akia|eyj)[-_]?[a-z0-9*._-]{8,}`)

// withReason sets an error's Reason, on one line and without keys. It ends where it
// begins to quote what was sent.
func withReason(e *Error, key string, sent []json.RawMessage) {
	said := strings.Join(strings.Fields(strings.ToValidUTF8(e.said, "")), " ")
	e.said = ""
	if runes := []rune(said); len(runes) > 2*maxReason {
		said = string(runes[:2*maxReason])
	}
	reason := beforeQuote(said, sent)
	if key != "" {
		reason = strings.ReplaceAll(reason, key, "…")
	}
	reason = strings.TrimRight(keyForm.ReplaceAllString(reason, "…"), " .")
	if runes := []rune(reason); len(runes) > maxReason {
		reason = string(runes[:maxReason]) + "…"
	} else if reason != "" && len(reason)+1 < len(said) && !strings.HasSuffix(reason, "…") {
		reason += " …"
	}
	e.Reason = reason
}

// beforeQuote is what a text says before it repeats a passage of what was sent.
func beforeQuote(text string, sent []json.RawMessage) string {
	const passage = 24 // bytes
	at := map[string]int{}
	for i := len(text) - passage; i >= 0; i-- {
		at[text[i:i+passage]] = i
	}
	end := len(text)
	for _, m := range sent {
		for i := 0; i+passage <= len(m) && len(at) > 0; i++ {
			if begin, found := at[string(m[i:i+passage])]; found {
				end = min(end, begin)
			}
		}
	}
	return strings.ToValidUTF8(text[:end], "")
}

// hints are members that help a provider and change no answer. A provider that doesn't
// know one gets the request without it.
var hints = []string{"prompt_cache_key", "prompt_cache_retention", "safety_identifier", "service_tier", "user", "verbosity"}

// aboutTools matches what a provider says that knows no custom tools, among other things.
var aboutTools = regexp.MustCompile(`(?i)custom|\btools?\b|'function'`)

// unknownHint is the hint that a fault names; "" for none.
func unknownHint(f fault) string {
	for _, name := range hints {
		if f.Param == name || strings.Contains(f.Message, name) && name != "user" {
			return name
		}
	}
	return ""
}

var codeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z_.]{1,39}$|^[1-9][0-9]{3}$`)

// isCode tells whether a word of the provider's may be shown. Codes are one
// word of letters, or four digits; keys and prompts are not.
func isCode(word string) bool { return codeForm.MatchString(word) }

// retryAfter reads how long to wait from seconds, milliseconds or a date.
func retryAfter(header http.Header) time.Duration {
	wait := func(name string, unit time.Duration) time.Duration {
		n, err := strconv.ParseFloat(header.Get(name), 64)
		if err != nil || math.IsNaN(n) || n <= 0 {
			return 0
		}
		return time.Duration(min(n*float64(unit), float64(maxRetryAfter)))
	}
	if d := wait("Retry-After-Ms", time.Millisecond); d > 0 {
		return d
	}
	if d := wait("Retry-After", time.Second); d > 0 {
		return d
	}
	if at, err := http.ParseTime(header.Get("Retry-After")); err == nil {
		return min(max(time.Until(at), 0), maxRetryAfter)
	}
	return 0
}

// broken is the error of a connection. It quotes nothing of err but what the
// system said, because the errors of net/http hold URLs and what came over
// the wire.
func broken(err error) *Error {
	var (
		timeout net.Error
		dns     *net.DNSError
		op      *net.OpError
		errno   syscall.Errno
	)
	switch {
	case errors.Is(err, errTooMuch):
		return failed(ErrAnswerTooLong, "the server sent more than an answer can take")
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: ErrTimeout, Detail: "the connection's own timeout passed", Err: context.DeadlineExceeded}
	case errors.As(err, &dns):
		return failed(ErrUnavailable, "the server's host name has no address; check the base URL")
	case errors.As(err, &op) && op.Op == "dial" && errors.As(err, &errno):
		return failed(ErrUnavailable, "no connection to the server: %v; check the base URL, and whether the server runs", errno)
	case errors.As(err, &op) && op.Op == "dial":
		return failed(ErrUnavailable, "no connection to the server; check the base URL, and whether the server runs")
	case errors.As(err, &errno):
		return failed(ErrUnavailable, "the connection broke: %v", errno)
	default:
		return failed(ErrUnavailable, "the connection broke before the answer was whole")
	}
}
