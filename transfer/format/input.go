package format

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-chat/coppice/fault"
)

// An Input is a file as a parser reads it, with the bounds of what the parser may
// take.
type Input struct {
	*bufio.Reader
	ctx  context.Context
	note func(Note)

	// Attached takes an attachment that stands in the file, before the conversation
	// that it stands in is emitted. nil leaves them out.
	Attached func(Attachment) error

	Member string // of the one object of the file, in which the conversations stand; "" for the file itself

	At    int64 // bytes taken from the reader by value and spaces
	Size  int   // bytes of the conversation that is being read
	made  int   // messages made of it
	asked int   // elements that parsers asked for, in all
	err   error // why the parser is to stop: the end of the context
}

// ReadBytes is the size of a reader's buffer.
const ReadBytes = 64 << 10

// NewInput reads from r until ctx ends, and passes notes on the file to note.
func NewInput(ctx context.Context, r io.Reader, note func(Note)) *Input {
	return &Input{Reader: bufio.NewReaderSize(r, ReadBytes), ctx: ctx, note: note}
}

// What is made of a message takes up to 1 kB besides its text, and text stands
// in memory up to four times. So a conversation may have so many messages in any
// case, and more where each has so many bytes of the file on average. The
// formats that take most count a message twice. A line of Coppice's own export
// has 230 bytes and more.
const (
	freeMessages    = 10_000
	BytesPerMessage = 200
)

// Begin begins a conversation of so many bytes. Took adds more.
func (in *Input) Begin(size int) Conversation {
	in.Size, in.made = size, 0
	return in.Conversation()
}

// Conversation begins another conversation in what is being read.
func (in *Input) Conversation() Conversation { return Conversation{in: in} }

// Stopped returns the error of the context that ended the reading, or nil.
func (in *Input) Stopped() error { return in.err }

// Asked returns how many elements the parser has asked for.
func (in *Input) Asked() int { return in.asked }

// Took adds bytes to the conversation that is being read.
func (in *Input) Took(size int) { in.Size += size }

// More reports whether to go on to the next element of a conversation. It is
// false after the context has ended, and where the conversation has too many
// messages for its bytes. A loop over elements of a file asks it before each
// element.
func (c *Conversation) More() bool {
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

// Room reports whether the conversation may have another message, and counts that
// message.
func (c *Conversation) Room() bool { return c.RoomFor(1) }

// RoomFor is Room for something that takes the memory of n messages.
func (c *Conversation) RoomFor(n int) bool {
	if c.in == nil {
		return true
	}
	if c.in.made += n; c.in.made > freeMessages+c.in.Size/BytesPerMessage {
		c.dense = true
	}
	return !c.dense
}

// TooDense says why a conversation with too many messages for its bytes is left
// out. It returns "" for any other conversation.
func (c *Conversation) TooDense() string {
	if !c.dense {
		return ""
	}
	return fmt.Sprintf("it has too many messages for its %d bytes, and would take too much memory. "+
		"%d messages are taken in any case, and more of them where each has %d bytes of the file", c.in.Size, freeMessages, BytesPerMessage)
}

// CodeFile is the code of the error of a file whose reading can't go on.
const CodeFile = "invalid_file"

// FileErrorf says what is wrong with a file, in words for people.
func FileErrorf(format string, args ...any) error {
	return fault.New(fault.Invalid, CodeFile, "", format, args...)
}

// cutOff is the error of a file that ends where it can't.
func (in *Input) cutOff(place string) error {
	return FileErrorf("the file is cut off: it ends in the middle of %s, at byte %d; export or copy it again", place, in.At)
}

// ReadError tells the end of the file from an error of the reader.
func (in *Input) ReadError(place string, err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return in.cutOff(place)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return FileErrorf("the file is cut off: what is packed in it ends in the middle of %s, at byte %d; export or copy it again", place, in.At)
	}
	return fmt.Errorf("%s, near byte %d: %w", place, in.At, err)
}
