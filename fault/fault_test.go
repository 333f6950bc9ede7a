package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

var absent = fault.New(fault.NotFound, "message_not_found", "parent_id", "There is no message %d.", 7)

// What an error is doesn't depend on how often it was wrapped, and by what.
func TestWrap(t *testing.T) {
	t.Parallel()
	canceled, passed := context.Canceled, fmt.Errorf("dial: %w", context.DeadlineExceeded)
	for name, test := range map[string]struct {
		err                       error
		kind                      fault.Kind
		code, field, detail, text string
	}{
		"plain":             {absent, fault.NotFound, "message_not_found", "parent_id", "There is no message 7.", "parent_id: There is no message 7."},
		"without a field":   {fault.New(fault.Full, "full", "", "No room."), fault.Full, "full", "", "No room.", "No room."},
		"without a detail":  {&fault.Error{Kind: fault.Conflict}, fault.Conflict, "", "", "", "conflict"},
		"with a cause":      {absent.From(io.ErrUnexpectedEOF), fault.NotFound, "message_not_found", "parent_id", "There is no message 7.", "unexpected EOF"},
		"made of a cause":   {fault.New(fault.Invalid, "file", "", "line 3: %w", io.EOF), fault.Invalid, "file", "", "line 3: EOF", "line 3: EOF"},
		"deep in the chain": {fmt.Errorf("step 2: %w", absent), fault.NotFound, "message_not_found", "parent_id", "There is no message 7.", "step 2: parent_id: There is no message 7."},
		"joined":            {errors.Join(io.EOF, absent), fault.NotFound, "message_not_found", "parent_id", "There is no message 7.", "EOF\nparent_id: There is no message 7."},
		"canceled":          {canceled, fault.Canceled, "", "", "", "context canceled"},
		"deadline":          {passed, fault.Timeout, "", "", "", "dial: context deadline exceeded"},
		"unknown":           {io.ErrClosedPipe, fault.Internal, "", "", "", "io: read/write on closed pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.err
			for _, op := range []string{"", "tree.View(a)", "reply.Start(b): tree.View(a)"} {
				if call, _, _ := strings.Cut(op, ": "); call != "" {
					fault.Wrap(&err, "%s", call)
				}
				text := test.text
				if op != "" {
					text = op + ": " + text
				}
				e := fault.Of(err)
				check.That(t, e.Kind == test.kind && e.Code == test.code && e.Field == test.field && e.Detail == test.detail, "%q: %+v", op, e)
				check.Equal(t, "the text", err.Error(), text)
				check.That(t, errors.Is(err, test.err) || errors.Is(err, test.kind), "%q: what it was is lost", err)
			}
			check.Equal(t, "the reason", fault.Of(err).Reason(), test.text)
		})
	}
	check.That(t, absent.Op == "" && absent.Err == nil, "a shared error was changed: %+v", absent)
}

func TestIs(t *testing.T) {
	t.Parallel()
	err := error(absent)
	fault.Wrap(&err, "tree.Append")
	err = fmt.Errorf("wrapped: %w", err)
	for target, want := range map[error]bool{
		fault.NotFound: true,
		fault.Invalid:  false,
		absent:         true,
		fault.New(fault.NotFound, "message_not_found", "", "In other words."): true,
		fault.New(fault.NotFound, "parent_not_found", "", ""):                 false,
		fault.New(fault.Invalid, "message_not_found", "", ""):                 false,
		&fault.Error{Kind: fault.NotFound}:                                    false,
		io.EOF:                                                                false,
	} {
		check.Equal(t, fmt.Sprintf("errors.Is(%q, %#v)", err, target), errors.Is(err, target), want)
	}
	check.That(t, errors.Is(absent.From(io.EOF), io.EOF), "the cause can't be found")
}

// The table of what the same input will be refused for again, and of fields.
func TestRefused(t *testing.T) {
	t.Parallel()
	for kind, want := range map[fault.Kind]bool{
		fault.Invalid: true, fault.NotFound: true, fault.Conflict: true, fault.TooLarge: true, fault.Full: true,
		fault.Unauthorized: false, fault.TooMany: false, fault.Unavailable: false, fault.Timeout: false, fault.Canceled: false,
		fault.Permanent: false, fault.Model: false, fault.ModelBusy: false, fault.ModelTimeout: false, fault.Internal: false,
	} {
		err := fmt.Errorf("wrapped: %w", fault.New(kind, "code", "content", "So it is."))
		check.Equal(t, string(kind)+" is refused", fault.Refused(err), want)
		field := "content"
		if want {
			field = "messages[2].content"
		}
		check.Equal(t, string(kind), fault.Of(fault.At(err, "messages[2]")).Field, field)
	}
	check.Equal(t, "the field", fault.Of(fault.At(fault.New(fault.Invalid, "code", "", "x"), "messages")).Field, "messages")
	io := io.ErrUnexpectedEOF
	check.That(t, !fault.Refused(io) && fault.At(io, "messages") == error(io), "an error of the outside is taken for a refusal")
}

func TestClip(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "short": "short", strings.Repeat("a", 40): strings.Repeat("a", 40), strings.Repeat("a", 41): strings.Repeat("a", 40) + "…",
		strings.Repeat("ä", 21): strings.Repeat("ä", 20) + "…", "a" + strings.Repeat("ä", 21): "a" + strings.Repeat("ä", 20) + "…",
	} {
		check.Equal(t, fmt.Sprintf("Clip(%q)", in), fault.Clip(in), want)
	}
}
