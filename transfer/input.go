package transfer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-chat/coppice/fault"
)

// An input is a file as a parser reads it, with what the parser may take of it.
type input struct {
	*bufio.Reader
	ctx    context.Context
	note   func(Note)
	member string // of the one object of the file, in which the conversations stand; "" for the file itself

	at    int64 // bytes taken from the reader by value and spaces
	size  int   // bytes of the conversation that is being read
	made  int   // messages made of it
	asked int   // elements that parsers asked for, in all
	err   error // why the parser is to stop: the end of the context
}

// readBytes is the size of a reader's buffer.
const readBytes = 64 << 10

func newInput(ctx context.Context, r io.Reader) *input {
	return &input{Reader: bufio.NewReaderSize(r, readBytes), ctx: ctx, note: func(Note) {}}
}

// What is made of a message takes up to 1 kB besides its text, and text stands
// in memory up to four times. So a conversation may have so many messages in any
// case, and more where each has so many bytes of the file on average. The
// formats that take most count a message twice. A line of Coppice's own export
// has 230 bytes and more.
const (
	freeMessages    = 10_000
	bytesPerMessage = 200
)

// begin begins a conversation of so many bytes. More may follow by took.
func (in *input) begin(size int) Conversation {
	in.size, in.made = size, 0
	return Conversation{in: in}
}

// took adds bytes to the conversation that is being read.
func (in *input) took(size int) { in.size += size }

// more tells whether to go on to the next element of a conversation: not after
// the context has ended, nor where there are too many messages for its bytes.
// Whatever loops over elements of a file asks it before each.
func (c *Conversation) more() bool {
	in := c.in
	if in == nil { // a conversation that no parser made
		return true
	}
	const often = 256 // elements
	if in.asked++; in.err == nil && in.asked%often == 0 {
		in.err = in.ctx.Err()
	}
	return in.err == nil && !c.dense
}

// room tells whether the conversation may have another message, and counts it.
func (c *Conversation) room() bool { return c.roomFor(1) }

// roomFor is room for what takes the memory of n messages.
func (c *Conversation) roomFor(n int) bool {
	if c.in == nil {
		return true
	}
	if c.in.made += n; c.in.made > freeMessages+c.in.size/bytesPerMessage {
		c.dense = true
	}
	return !c.dense
}

// tooDense says why a conversation with too many messages for its bytes is left
// out.
func (c *Conversation) tooDense() string {
	return fmt.Sprintf("it has too many messages for its %d bytes, and would take too much memory. "+
		"%d messages are taken in any case, and more of them where each has %d bytes of the file", c.in.size, freeMessages, bytesPerMessage)
}

// fileErrorf says what is wrong with a file, in words for people.
func fileErrorf(format string, args ...any) error {
	return fault.New(fault.Invalid, CodeFile, "", format, args...)
}

// ofFile makes whatever ended the reading of a file an error of the file. Its
// detail is the whole text, with the format and the place.
func ofFile(err error) error {
	if err == nil {
		return nil
	}
	e := fault.Error{Kind: fault.Invalid, Code: CodeFile, Detail: err.Error(), Err: err}
	var known *fault.Error
	if errors.As(err, &known) {
		e.Kind, e.Code = known.Kind, known.Code
	}
	return &e
}

// cutOff is the error of a file that ends where it can't.
func (in *input) cutOff(place string) error {
	return fileErrorf("the file is cut off: it ends in the middle of %s, at byte %d; export or copy it again", place, in.at)
}

// readError tells the end of the file from a reader that failed.
func (in *input) readError(place string, err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return in.cutOff(place)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fileErrorf("the file is cut off: what is packed in it ends in the middle of %s, at byte %d; export or copy it again", place, in.at)
	}
	return fmt.Errorf("%s, near byte %d: %w", place, in.at, err)
}
