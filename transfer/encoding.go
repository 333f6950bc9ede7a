package transfer

import (
	"bufio"
	"bytes"
	"io"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/coppice-chat/coppice/transfer/format"
)

// asUTF8 gives the text of r in UTF-8 and without a byte order mark. UTF-16 and
// UTF-32 are known by their mark or, since a file of JSON begins with characters
// of ASCII, by where its first four bytes are zero.
func asUTF8(r io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(r, format.ReadBytes)
	head, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	var from encoding.Encoding
	switch mark, zeros := head, zerosOf(head); {
	case bytes.HasPrefix(mark, []byte("\xEF\xBB\xBF")):
		_, _ = in.Discard(3) // which Peek has buffered
	case bytes.HasPrefix(mark, []byte("\xFF\xFE\x00\x00")), zeros == "x000":
		from = utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)
	case bytes.HasPrefix(mark, []byte("\x00\x00\xFE\xFF")), zeros == "000x":
		from = utf32.UTF32(utf32.BigEndian, utf32.UseBOM)
	case bytes.HasPrefix(mark, []byte("\xFF\xFE")), zeros == "x0x0":
		from = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case bytes.HasPrefix(mark, []byte("\xFE\xFF")), zeros == "0x0x":
		from = unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	}
	if from == nil {
		return in, nil
	}
	return from.NewDecoder().Reader(in), nil
}

// zerosOf writes an x for each byte that is not zero.
func zerosOf(head []byte) string {
	pattern := []byte("xxxx")[:len(head)]
	for i, c := range head {
		if c == 0 {
			pattern[i] = '0'
		}
	}
	return string(pattern)
}
