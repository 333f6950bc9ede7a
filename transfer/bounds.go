package transfer

import (
	"io"
	"sync/atomic"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
)

// A bounded reader ends in a fault.TooLarge where a conversation, or all that comes
// out of the file, has more bytes than it may. The reader's own buffers come on
// top.
type bounded struct {
	from       io.Reader
	most       int64 // of a conversation; 0 is any number
	read, left int64 // since the last conversation; in all
	limited    bool  // left counts
}

func newBounded(opts Options) *bounded {
	return &bounded{most: opts.MaxConversationBytes, left: opts.MaxBytes, limited: opts.MaxBytes > 0}
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.most > 0 && b.read > b.most {
		return 0, tooLarge("a conversation has over %d bytes", b.most)
	}
	n, err := b.from.Read(p)
	b.read += int64(n)
	if b.limited {
		if b.left -= int64(n); b.left < 0 {
			return 0, tooLarge("what it holds has over the bytes that it may")
		}
	}
	return n, err
}

func tooLarge(format string, args ...any) error {
	return fault.New(fault.TooLarge, CodeTooLarge, "", "too large: "+format, args...)
}

// pass leaves bytes of the conversation out of account that are in no memory any
// more.
func (b *bounded) pass(n int) { b.read = max(b.read-int64(n), 0) }

// next begins the next conversation.
func (b *bounded) next() { b.read = 0 }

// A noteLimit keeps so many notes of a run, and counts the rest.
type noteLimit struct {
	most    int64 // 0 is any number
	noted   atomic.Int64
	omitted atomic.Int64
}

// keep gives those of the notes that there is room for.
func (l *noteLimit) keep(notes ...format.Note) []format.Note {
	if l.most == 0 {
		return notes
	}
	room := l.most - (l.noted.Add(int64(len(notes))) - int64(len(notes)))
	room = min(max(room, 0), int64(len(notes)))
	l.omitted.Add(int64(len(notes)) - room)
	return notes[:room]
}
