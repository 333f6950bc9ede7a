package tree

import (
	"errors"
	"fmt"

	"github.com/coppice-chat/coppice/db"
)

// Kinds of error, for errors.Is. Every *Error is of one of them; any other
// error that a method returns is the database's or the context's.
var (
	ErrNotFound = errors.New("not found") // no such thing, or another tenant's
	ErrConflict = errors.New("conflict")  // the id is taken by something else
	ErrInvalid  = errors.New("invalid")   // the input can't be stored as it is
	ErrTooLarge = errors.New("too large") // the input is over a limit
	ErrLimit    = errors.New("no room")   // the tenant has as much as it may; see Limits
	ErrTimeout  = errors.New("too long")  // the work was given up; see SearchTimeout
)

// An Error tells a caller what to mend. Detail is made for people and names
// no other tenant's data; Code is stable, for programs.
type Error struct {
	Kind   error  // ErrNotFound, ErrConflict, ErrInvalid, ErrTooLarge, ErrLimit or ErrTimeout
	Code   string // such as "parent_not_found"
	Field  string // the input it is about, as a path such as "messages[2].content"; "" for none
	Detail string // one or two sentences: what is wrong and how to mend it
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Detail
	}
	return e.Field + ": " + e.Detail
}

func (e *Error) Unwrap() error { return e.Kind }

// Refused tells whether an error says that what was to be stored can't be, so
// that the same again fails the same. Any other error is of the database or the
// context: the same may succeed later.
func Refused(err error) bool {
	var e *Error
	return errors.As(err, &e) || db.Refused(err)
}

// at puts an error's field below a parent path: "content" becomes
// "messages[2].content".
func at(err error, parent string) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	below := *e
	switch {
	case below.Field == "":
		below.Field = parent
	default:
		below.Field = parent + "." + below.Field
	}
	return &below
}

func invalid(code, field, format string, args ...any) error {
	return &Error{Kind: ErrInvalid, Code: code, Field: field, Detail: fmt.Sprintf(format, args...)}
}

func tooLarge(code, field, format string, args ...any) error {
	return &Error{Kind: ErrTooLarge, Code: code, Field: field, Detail: fmt.Sprintf(format, args...)}
}

func conflict(field, format string, args ...any) error {
	return &Error{Kind: ErrConflict, Code: "id_conflict", Field: field, Detail: fmt.Sprintf(format, args...)}
}

var errConversationNotFound = &Error{
	Kind: ErrNotFound, Code: "conversation_not_found",
	Detail: "There is no conversation with this id. List the conversations to see which there are.",
}

var errMessageNotFound = &Error{
	Kind: ErrNotFound, Code: "message_not_found",
	Detail: "The conversation has no message with this id. Read its tree to see which there are.",
}
