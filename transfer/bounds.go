package transfer

import (
	"io"

	"github.com/coppice-chat/coppice/fault"
)

// A file may unpack to so many bytes in any case, and to so many times the bytes that
// came in. The real exports here unpack to 11 times at most.
const (
	freeUnpacked = 4 << 20
	mostUnpacked = 100
)

// It may have so many conversations in any case, and more where so many bytes came in
// for each: a file that isn't packed hardly has one in less. Each takes memory until
// the end, and so there is a bound to all.
const (
	freeConversations    = 1000
	bytesPerConversation = 32
	maxConversations     = 1_000_000
)

// A bounded reader ends in a fault.TooLarge where a conversation, or all that comes
// out of the file, has more bytes than it may. The reader's own buffers come on
// top. It ends with the run.
type bounded struct {
	from          io.Reader
	sent          func() int64 // bytes of the file that came in
	stopped       func() error
	most          int64 // of a conversation; 0 is any number
	mostInAll     int64 // 0 is any number
	read          int64 // since the last conversation
	unpacked      int64 // in all
	conversations int
}

func newBounded(opts Options, stopped func() error) *bounded {
	return &bounded{most: opts.MaxConversationBytes, mostInAll: opts.MaxBytes, stopped: stopped}
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.stopped(); err != nil {
		return 0, err
	}
	if b.most > 0 && b.read > b.most {
		return 0, tooLarge("a conversation has over %d bytes. Import it by `coppice import`", b.most)
	}
	n, err := b.from.Read(p)
	b.read += int64(n)
	if err := b.unpack(n); err != nil {
		return 0, err
	}
	return n, err
}

// unpack counts bytes that came out of the file.
func (b *bounded) unpack(n int) error {
	switch b.unpacked += int64(n); {
	case b.mostInAll > 0 && b.unpacked > b.mostInAll:
		return tooLarge("what it holds has over %d bytes. Split it, or import it by `coppice import`", b.mostInAll)
	case b.unpacked > freeUnpacked+mostUnpacked*b.sent():
		return tooLarge("it unpacks to over %d times its bytes. Unpack it, and import what was in it", mostUnpacked)
	}
	return nil
}

func tooLarge(format string, args ...any) error {
	return fault.New(fault.TooLarge, CodeTooLarge, "", "too large: "+format, args...)
}

// pass leaves bytes of the conversation out of account that are in no memory any
// more.
func (b *bounded) pass(n int) { b.read = max(b.read-int64(n), 0) }

// next begins the next conversation.
func (b *bounded) next() { b.read = 0 }

// conversation counts a conversation, and begins the next.
func (b *bounded) conversation() error {
	b.next()
	switch b.conversations++; {
	case b.conversations > maxConversations:
		return tooLarge("it has over %d conversations. Split it, and import the parts", maxConversations)
	case int64(b.conversations) > freeConversations+b.sent()/bytesPerConversation:
		return tooLarge("it has over %d conversations, and less than %d bytes for each. Unpack a packed file and import what was in it, without conversations that hold nothing",
			freeConversations, bytesPerConversation)
	}
	return nil
}
