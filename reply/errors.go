package reply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
)

var (
	errReplyNotFound = fault.New(fault.NotFound, "reply_not_found", "",
		"No reply of this id runs, and no answer of this id is stored.")
	errClosed = fault.New(fault.Unavailable, "shutting_down", "",
		"The server is about to stop and begins no replies. Send the request again in a moment.")
	errConversationDeleted = fault.New(fault.NotFound, "conversation_not_found", "",
		"The conversation was deleted while the answer came, so nothing of the answer is stored. Begin a new conversation.")
	errBranchDeleted = fault.New(fault.NotFound, "message_not_found", "",
		"What was answered, or the answer, was deleted while the answer came, so nothing of it is stored. Go on from a message that is still there.")
	errTaken = fault.New(fault.Conflict, "id_conflict", "id",
		"The id is taken by another message, or by the reply to another one. Send a new id, or none.")
	errJustEnded = fault.New(fault.Conflict, "changed_meanwhile", "",
		"A reply of this id just ended. Send the request again.")
	errInterrupted = fault.New(fault.Model, "model_unavailable", "",
		"The server was killed before anything came of the answer. Ask again for another try, which makes a sibling.")
	errAnswerTooLong = fault.New(fault.Model, "answer_too_long", "",
		"The model's answer is longer than a message may be, so it was cut off. Ask for less, or set max_output_tokens.")
)

// Causes of a reply's end, as context.Cause gives them.
var (
	errStopped = errors.New("the reply was stopped")
	errClosing = errors.New("the program ends")
	errLost    = errors.New("another server took the reply, because this one gave no sign of life")
)

// deleted is the error of a reply that is gone: it tells what was deleted.
func (s *Service) deleted(ctx context.Context, k key) error {
	if _, err := s.store.Conversation(ctx, k.conversation); errors.Is(err, fault.NotFound) {
		return errConversationDeleted
	}
	return errBranchDeleted
}

// modelFaults name what may go wrong with a model.
var modelFaults = []struct {
	of     error
	kind   fault.Kind
	code   string
	advice string
}{
	{llm.ErrPromptTooLong, fault.Model, "prompt_too_long", "Set the conversation's max_context_tokens to the model's window, or compact the branch."},
	{llm.ErrAnswerTooLong, fault.Model, "answer_too_long", "Ask for less, or set max_output_tokens."},
	{llm.ErrAuth, fault.Model, "model_not_authorized", "Whoever runs this server must fix its API key or account."},
	{llm.ErrRateLimited, fault.ModelBusy, "model_rate_limited", "Ask again later."},
	{llm.ErrTimeout, fault.ModelTimeout, "model_timeout", "Ask again for another try, which makes a sibling."},
	{llm.ErrUnavailable, fault.Model, "model_unavailable", "Ask again for another try, which makes a sibling."},
	{llm.ErrInvalid, fault.Model, "model_refused", "Check the model's name, the tools and the other parameters of the request."},
	{llm.ErrBadResponse, fault.Model, "model_bad_response", "Ask again for another try, which makes a sibling."},
}

// A logged error is one that the reply's line in the log tells.
type logged struct{ error }

// Unwrap returns the error.
func (l logged) Unwrap() error { return l.error }

// Logged reports whether the log tells err already, in the line of a reply.
func Logged(err error) bool { return errors.As(err, new(logged)) }

// butStored adds to what went wrong that not all is lost.
func butStored(err error) error {
	var known *fault.Error
	if !errors.As(err, &known) {
		return err
	}
	e := *known
	e.Detail += " What came until then is stored."
	return &e
}

// RetryAfter returns how long a model's provider asks to wait before the next
// request; 0 where err doesn't say.
func RetryAfter(err error) time.Duration {
	var e *llm.Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// modelError is what a caller may know of a failed call. An error that is no
// *llm.Error nor a *fault.Error is a bug of the model's, and stays unsaid.
func modelError(err error) error {
	var known *fault.Error
	var e *llm.Error
	if errors.As(err, &known) || !errors.As(err, &e) {
		return err
	}
	for _, f := range modelFaults {
		if !errors.Is(e, f.of) {
			continue
		}
		detail := fmt.Sprintf("No whole answer came: %s. %s", e, f.advice)
		if e.Kind == llm.ErrInvalid && e.Status != 0 && e.Reason != "" { // which says better than any advice what to mend
			detail = fmt.Sprintf("The provider of the model refused the request with HTTP %d: %s.", e.Status, e.Reason)
		}
		return &fault.Error{Kind: f.kind, Code: f.code, Detail: detail, Err: e}
	}
	return err
}
