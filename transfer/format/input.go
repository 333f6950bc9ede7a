package format

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	// File gives a file of the archive whose name begins with an id, and what it is
	// called there. nil where the file is no archive.
	File func(id string) (name string, data []byte, ok bool)

	// Other is asked to read an element of the file of which the format makes no
	// conversation, and tells whether it could. nil leaves such elements out.
	Other func(place string, element json.RawMessage) (bool, error)

	Member string // of the one object of the file, in which the conversations stand; "" for the file itself

	At       int64 // bytes taken from the reader by value and spaces
	Size     int   // bytes of the conversation that is being read
	made     int   // messages made of it
	steps    int64 // taken beside reading elements, in all
	tally    Tally // of nodes that belong to no conversation
	elements int64 // of the file
	asked    int   // elements that parsers asked for, in all
	err      error // why the parser is to stop: the end of the context
	last     bool  // the line that is being read is the last, and has no end
}

// ReadBytes is the size of a reader's buffer.
const ReadBytes = 64 << 10

// NewInput reads from r until ctx ends, and passes notes on the file to note.
func NewInput(ctx context.Context, r io.Reader, note func(Note)) *Input {
	size := ReadBytes
	if held, ok := r.(*bytes.Reader); ok { // a sample or an element, of which there may be many
		size = min(size, held.Len())
	}
	return &Input{Reader: bufio.NewReaderSize(r, size), ctx: ctx, note: note}
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

// Some loops take more steps than a file has elements: those that look along
// branches, or copy a text to each message below it. Together they may take so many,
// and so many more for each byte of the file. Of messages with 64 calls each, and the
// shortest results, they take half a step for each byte.
const (
	freeSteps    = 1 << 20
	stepsPerByte = 1
)

// A file may have so many elements or lines in any case, and more where each has so
// many bytes on average: what is smaller says nothing, and costs time to leave out.
const (
	FreeElements    = 10_000
	BytesPerElement = 16
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
// messages or elements for its bytes. A loop over elements of a file asks it before
// each element.
func (c *Conversation) More() bool {
	in := c.in
	if in == nil { // a conversation that no parser made
		return true
	}
	const (
		often = 256 // elements
		times = 5   // that each may be asked for
	)
	if int64(in.asked) >= times*FreeElements+in.At/BytesPerElement {
		c.dense = "too many elements that hold no message"
		return false // the next conversation may have what is left
	}
	if in.asked++; in.err == nil && in.asked%often == 0 {
		in.err = in.ctx.Err()
	}
	return in.err == nil && c.dense == ""
}

// Steps counts n steps of a loop that isn't bounded by the conversation's elements,
// and reports whether to go on, as More does.
func (c *Conversation) Steps(n int) bool {
	in := c.in
	if in == nil {
		return true
	}
	const often = 1 << 16 // steps
	steps := in.steps + int64(n)
	if steps > freeSteps+stepsPerByte*in.At {
		c.dense = "too much that has to be looked through: tool calls, their results, or replies to one message"
		return false // the next conversation may have what is left
	}
	if steps/often > in.steps/often && in.err == nil {
		in.err = in.ctx.Err()
	}
	in.steps = steps
	return in.err == nil && c.dense == ""
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
		c.dense = fmt.Sprintf("too many messages: %d are taken in any case, and more of them where each has %d bytes of the file", freeMessages, BytesPerMessage)
	}
	return c.dense == ""
}

// TooDense says why a conversation that would cost too much for its bytes is left
// out. It returns "" for any other conversation.
func (c *Conversation) TooDense() string {
	if c.dense == "" {
		return ""
	}
	return fmt.Sprintf("for its %d bytes it has %s", c.in.Size, c.dense)
}

// Join adds the notes and nodes of a part of the conversation, and whether that is too
// dense. The part's messages are for the caller to add.
func (c *Conversation) Join(part *Conversation) {
	c.dense = cmp.Or(c.dense, part.dense)
	c.Notes = append(c.Notes, part.Notes...)
	for i := range part.Messages {
		part.Messages[i].Node += len(c.fates)
	}
	c.fates = append(c.fates, part.fates...)
	c.at = len(c.fates)
}

// next counts an element of the file at place. It returns an error after the context
// has ended, and where the file has too many elements for its bytes.
func (in *Input) next(place string) error {
	if in.err = in.ctx.Err(); in.err != nil {
		return in.err
	}
	if in.elements++; in.elements > FreeElements+in.At/BytesPerElement {
		return fault.New(fault.TooLarge, CodeTooLarge, "", "%s, near byte %d: the file has too many elements for its bytes. %d are read in any case, "+
			"and more of them where each has %d bytes: take out those that hold no message", place, in.At, FreeElements, BytesPerElement)
	}
	return nil
}

// CodeTooLarge is the code of the error of a file beyond the bounds.
const CodeTooLarge = "body_too_large"

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
