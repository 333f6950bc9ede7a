package reply

import (
	"errors"
	"fmt"

	"github.com/coppice-chat/coppice/llm"
)

// Kinds of error, for errors.Is. Every *Error is of one of them. Methods also
// return errors of package tree, of the settings (package summarize), of the
// database and of the context.
var (
	ErrInvalid  = errors.New("invalid")              // the request can't be met as it is
	ErrNotFound = errors.New("not found")            // no such reply
	ErrConflict = errors.New("conflict")             // the id is taken by something else
	ErrBusy     = errors.New("too many replies")     // as many run as may
	ErrClosed   = errors.New("closed")               // the service is ending
	ErrModel    = errors.New("the model has failed") // no whole answer came
)

// An Error tells a caller what to mend. Detail is made for people; it holds
// neither keys nor text of messages.
type Error struct {
	Kind   error  // one of the kinds above
	Code   string // stable, for programs, such as "head_not_answerable"
	Field  string // the input it is about, "" for none
	Detail string // one or two sentences: what is wrong and how to mend it

	Err error // the cause, for the log; nil for none
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Detail
	}
	return e.Field + ": " + e.Detail
}

// Unwrap returns Kind, and Err if there is one.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

func invalid(code, field, format string, args ...any) *Error {
	return &Error{Kind: ErrInvalid, Code: code, Field: field, Detail: fmt.Sprintf(format, args...)}
}

var (
	errReplyNotFound = &Error{Kind: ErrNotFound, Code: "reply_not_found",
		Detail: "No reply of this id runs here, and no answer of this id is stored. Replies under way are known only to the server that runs them."}
	errClosed = &Error{Kind: ErrClosed, Code: "shutting_down",
		Detail: "The server is about to stop and begins no replies. Send the request again in a moment."}
	errTaken = &Error{Kind: ErrConflict, Code: "id_conflict", Field: "id",
		Detail: "The id is taken by another message, or by the reply to another one. Send a new id, or none."}
	errAnswerTooLong = &Error{Kind: ErrModel, Code: "answer_too_long",
		Detail: "The model's answer is longer than a message may be, so it was cut off. Ask for less, or set max_output_tokens."}
)

// Causes of a reply's end, as context.Cause gives them.
var (
	errStopped = errors.New("the reply was stopped")
	errClosing = errors.New("the program ends")
)

// modelCodes name what may go wrong with a model.
var modelCodes = []struct {
	kind   error
	code   string
	advice string
}{
	{llm.ErrPromptTooLong, "prompt_too_long", "Set the conversation's max_context_tokens to the model's window, or compact the branch."},
	{llm.ErrAnswerTooLong, "answer_too_long", "Ask for less, or set max_output_tokens."},
	{llm.ErrAuth, "model_not_authorized", "Whoever runs this server must mend its API key or account."},
	{llm.ErrRateLimited, "model_rate_limited", "Ask again later."},
	{llm.ErrTimeout, "model_timeout", "Ask again for another try, which makes a sibling."},
	{llm.ErrUnavailable, "model_unavailable", "Ask again for another try, which makes a sibling."},
	{llm.ErrInvalid, "model_refused", "Check the tools and the other parameters of the request."},
	{llm.ErrBadResponse, "model_bad_response", "Ask again for another try, which makes a sibling."},
}

// butStored adds to what went wrong that not all is lost.
func butStored(err error) error {
	var own *Error
	if !errors.As(err, &own) {
		return err
	}
	e := *own
	e.Detail += " What came until then is stored."
	return &e
}

// modelError is what a caller may know of a failed call. An error that is no
// *llm.Error nor an *Error is a bug of the model's, and stays unsaid.
func modelError(err error) error {
	var own *Error
	var e *llm.Error
	if errors.As(err, &own) || !errors.As(err, &e) {
		return err
	}
	for _, c := range modelCodes {
		if errors.Is(e, c.kind) {
			return &Error{Kind: ErrModel, Code: c.code, Detail: fmt.Sprintf("No whole answer came: %s. %s", e, c.advice), Err: e}
		}
	}
	return err
}
