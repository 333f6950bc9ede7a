package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kinds of error, for errors.Is.
var (
	ErrInvalid       = errors.New("invalid request") // it can't be sent, or the provider refuses it as it is
	ErrAuth          = errors.New("not authorized")  // the key, its rights or its account
	ErrRateLimited   = errors.New("rate limited")    // too much at a time, or a spent quota
	ErrUnavailable   = errors.New("unavailable")     // no connection, a connection cut, or a fault of the provider's
	ErrTimeout       = errors.New("timed out")       // the deadline passed first
	ErrCanceled      = errors.New("canceled")        // the caller gave up
	ErrBadResponse   = errors.New("bad response")    // an answer that isn't one
	ErrPromptTooLong = errors.New("prompt too long") // the messages don't fit the model's window
	ErrAnswerTooLong = errors.New("answer too long") // the answer is over the client's limit
)

// An Error says why a model gave no answer. It never holds the key or a passage
// of the messages, not even one that a provider quoted. So it can be logged and
// shown.
type Error struct {
	Kind       error         // one of the kinds above
	Model      string        // as configured
	Status     int           // of HTTP; 0 if there is none
	Code       string        // the provider's, such as "insufficient_quota"; "" for none
	RetryAfter time.Duration // how long the provider asks to wait; 0 if it doesn't
	Detail     string        // what went wrong, and how to fix it where that helps
	Reason     string        // the provider's own words, on one line; "" for none

	Err error // with ErrTimeout context.DeadlineExceeded, with ErrCanceled context.Canceled, else nil

	said  string // the provider's message as it came, of which withReason makes Reason
	hint  string // the member of the request that the provider doesn't know; "" for none
	wants form   // in which the model would take the messages; formFree where that isn't it
	tools bool   // it may be about tools
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "model %s: %v", e.Model, e.Kind)
	var notes []string
	if e.Status != 0 {
		notes = append(notes, fmt.Sprintf("HTTP %d", e.Status))
	}
	if e.Code != "" {
		notes = append(notes, e.Code)
	}
	if e.RetryAfter > 0 {
		notes = append(notes, "retry after "+e.RetryAfter.String())
	}
	if len(notes) > 0 {
		b.WriteString(" (" + strings.Join(notes, ", ") + ")")
	}
	says := "; it says: "
	if e.Detail == "" {
		says = ": the provider says: "
	} else {
		b.WriteString(": " + e.Detail)
	}
	if e.Reason != "" {
		b.WriteString(says + e.Reason)
	}
	return b.String()
}

// Unwrap returns Kind, and Err if there is one.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

func failed(kind error, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// ended is the error of a call whose context is done, or nil if it isn't.
func ended(ctx context.Context) *Error {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: ErrTimeout, Detail: "the deadline passed before the answer was whole", Err: err}
	default:
		return &Error{Kind: ErrCanceled, Err: err}
	}
}
