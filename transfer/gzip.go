package transfer

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"

	"github.com/coppice-chat/coppice/transfer/format"
)

// gzipMagic is how every gzip file begins.
const gzipMagic = "\x1f\x8b\x08"

// A gunzip unpacks gzip files that stand one behind the other. Zeros behind them
// fill a file up, as tapes and some copying programs do. What else stands there is
// left out and noted.
type gunzip struct {
	unpacked *gzip.Reader
	from     *bufio.Reader
	note     func(Note)
}

func newGunzip(from *bufio.Reader, note func(Note)) (*gunzip, error) {
	unpacked, err := gzip.NewReader(from)
	if err != nil {
		return nil, format.FileErrorf("the gzip file can't be unpacked: %w", err)
	}
	unpacked.Multistream(false)
	return &gunzip{unpacked, from, note}, nil
}

func (g *gunzip) Read(p []byte) (int, error) {
	for {
		n, err := g.unpacked.Read(p)
		if !errors.Is(err, io.EOF) || n > 0 {
			if errors.Is(err, io.EOF) {
				err = nil // which the next Read finds again
			}
			return n, unpackError(err)
		}
		if err := g.next(); err != nil {
			return 0, err
		}
	}
}

// unpackError says what is wrong with the file. Errors of the reader below stay as
// they are.
func unpackError(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return format.FileErrorf("the gzip file is cut off; export or copy it again: %w", err)
	case errors.As(err, &corrupt), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		return format.FileErrorf("the gzip file is damaged and can't be unpacked further; export or copy it again: %w", err)
	}
	return err
}

// next begins the gzip file behind the one that ended; io.EOF where there is none.
func (g *gunzip) next() error {
	for {
		c, err := g.from.ReadByte()
		if err != nil {
			return err
		}
		if c != 0 {
			break
		}
	}
	_ = g.from.UnreadByte() // which was just read
	head, err := g.from.Peek(len(gzipMagic))
	switch {
	case bytes.HasPrefix(head, []byte(gzipMagic)):
		if err := g.unpacked.Reset(g.from); err != nil {
			return unpackError(err)
		}
		g.unpacked.Multistream(false)
		return nil
	case err != nil && !errors.Is(err, io.EOF):
		return err
	}
	g.note(Note{Action: format.LeftOut, Kind: format.KindSyntax, Detail: "what stands behind the end of the gzip file"})
	return io.EOF
}
