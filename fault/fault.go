// Package fault has the one error of Coppice's packages. Its kind says what a
// program can do about it, its code names it for good, and its detail tells a
// person how to fix the input:
//
//	_, err := store.Append(ctx, conversationID, parentID, message)
//	if errors.Is(err, fault.NotFound) {
//		…
//	}
//	var e *fault.Error
//	if errors.As(err, &e) {
//		log.Printf("%s (%s) at %q: %s", e.Kind, e.Code, e.Field, e.Detail)
//	}
//
// The package knows neither HTTP nor Postgres: package server has the table of
// statuses, and package db tells the errors of the database apart.
package fault

import (
	"context"
	"errors"
	"fmt"
)

// A Kind says what sort of error an error is. It is an error itself, so that
// errors.Is(err, fault.NotFound) works.
type Kind string

// Kinds of error.
const (
	Invalid      Kind = "invalid"        // the input can't be taken as it is
	NotFound     Kind = "not found"      // there is no such thing, or it is another tenant's
	Conflict     Kind = "conflict"       // something else has the id, or the state has changed
	TooLarge     Kind = "too large"      // the input is over a limit of size
	Full         Kind = "no room"        // the tenant has stored as much as it may
	Forbidden    Kind = "forbidden"      // who asks may not do this
	Unauthorized Kind = "not authorized" // the key is unknown or revoked
	TooMany      Kind = "too many"       // as many run at a time as may: there is room later
	Unavailable  Kind = "unavailable"    // the database or the service is away: the same may go well later
	Timeout      Kind = "too long"       // the work was given up, or the context's deadline passed
	Canceled     Kind = "canceled"       // the caller's context was canceled
	Permanent    Kind = "permanent"      // the database refuses the very data, and will refuse it again
	Model        Kind = "model failed"   // a model gave no whole answer
	ModelBusy    Kind = "model is busy"  // the model's provider takes no more for now
	ModelTimeout Kind = "model too slow" // the model's answer did not come in time
	Internal     Kind = "internal"       // a bug, or an error that no other kind covers
)

func (k Kind) Error() string { return string(k) }

// An Error says what went wrong, and how to fix it. Goroutines share errors, so
// a function that changes an error changes a copy.
type Error struct {
	Kind   Kind
	Code   string // stable, for programs, such as "parent_not_found"; "" where only the kind is known
	Field  string // the input that is wrong, as a path such as "messages[2].content"; "" for none
	Detail string // for people: what is wrong and how to fix it. It holds no key and no other tenant's data

	Op  string // the calls that failed, outermost first, with their arguments: for logs
	Err error  // the cause, for logs; nil for none
}

// New makes an error. A %w in the format makes its argument the error's cause.
func New(kind Kind, code, field, format string, args ...any) *Error {
	said := fmt.Errorf(format, args...)
	e := &Error{Kind: kind, Code: code, Field: field, Detail: said.Error()}
	switch said.(type) {
	case interface{ Unwrap() error }, interface{ Unwrap() []error }:
		e.Err = said
	}
	return e
}

// From returns a copy of the error with a cause.
func (e *Error) From(cause error) *Error {
	c := *e
	c.Err = cause
	return &c
}

// Error returns the text for logs: the calls that failed, and the cause. Where
// there is no cause, it has the field and the detail.
func (e *Error) Error() string {
	if e.Op == "" {
		return e.Reason()
	}
	return e.Op + ": " + e.Reason()
}

// Reason returns the text of Error without the calls that failed.
func (e *Error) Reason() string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Detail == "":
		return string(e.Kind)
	case e.Field == "":
		return e.Detail
	}
	return e.Field + ": " + e.Detail
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, kind) true for the error's kind, and
// errors.Is(err, other) for another error of the same kind and code.
func (e *Error) Is(target error) bool {
	switch t := target.(type) {
	case Kind:
		return e.Kind == t
	case *Error:
		return e.Code != "" && e.Code == t.Code && e.Kind == t.Kind
	}
	return false
}

// Of returns the Error in err's chain. Where there is none, it makes one with err
// as its cause: of kind Canceled or Timeout for an error of a context, and of
// kind Internal for any other. Of(nil) is nil.
func Of(err error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled):
		return &Error{Kind: Canceled, Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: Timeout, Err: err}
	}
	return &Error{Kind: Internal, Err: err}
}

// Wrap notes that a call failed, with its arguments. It gives *err a kind where
// it has none. A function defers it:
//
//	defer fault.Wrap(&err, "reply.Find(%s)", id)
//
// A function that asks the database defers db.Wrap, which calls Wrap.
func Wrap(err *error, format string, args ...any) {
	if *err == nil {
		return
	}
	found := Of(*err)
	e := *found
	if error(found) != *err { // it stands deeper in the chain, whose text is kept
		e.Err, e.Op = *err, ""
	}
	op := fmt.Sprintf(format, args...)
	if e.Op != "" {
		op += ": " + e.Op
	}
	e.Op = op
	*err = &e
}

// Refused reports whether the input can't be taken, so that the same input would
// be refused again. Any other error comes from the database, a model or the
// context, and the same call may succeed later.
func Refused(err error) bool {
	if err == nil {
		return false
	}
	switch Of(err).Kind {
	case Invalid, NotFound, Conflict, TooLarge, Full:
		return true
	}
	return false
}

// At puts the field of a refusal below a parent: "content" becomes
// "messages[2].content". It returns other errors unchanged, and all where there is
// no parent.
func At(err error, parent string) error {
	if parent == "" || !Refused(err) {
		return err
	}
	e := *Of(err)
	if e.Field == "" {
		e.Field = parent
	} else {
		e.Field = parent + "." + e.Field
	}
	return &e
}

// Clip shortens a caller's text for a detail.
func Clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	for i := range s {
		if i >= most {
			return s[:i] + "…"
		}
	}
	return s
}

// Bytes writes a number of bytes for people: limits are powers of two, and are told as such.
func Bytes[N int | int64](n N) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%d bytes", n)
}
