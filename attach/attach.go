// Package attach reads what a picture or file is: of which type its bytes are, how
// many pixels a picture has, and what of a file a model can read. It believes
// bytes and no name. It stores nothing and decodes no pixels.
package attach

import (
	"bytes"
	"context"
	"image"
	_ "image/gif"  // registers the decoder
	_ "image/jpeg" // registers the decoder
	_ "image/png"  // registers the decoder
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/fault"
)

// MaxText is how many bytes a text file may have, and the text of a PDF.
const MaxText = 1 << 20

// MaxName is the largest number of characters in a name.
const MaxName = 200

// A Content is what was found of an attachment's bytes.
type Content struct {
	MediaType     string
	Width, Height int    // of a picture, in pixels; 0 of a file
	Text          string // of a file, what a model reads; "" of a picture
}

// Shown reports whether a media type is one of the pictures that Read knows. Only
// those may stand in a page: the bytes of other types could be read as a page of
// their own.
func Shown(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// A format is one whose files another package reads.
type format struct {
	magic string // its files begin with it
	read  func(ctx context.Context, data []byte) (Content, error)
}

var formats []format

// Register makes Read call a function for files that begin with magic. It is for
// init functions, as [image.RegisterFormat] is: who imports package attach/pdf has
// PDFs read, and who doesn't is spared PDFium.
func Register(magic string, read func(ctx context.Context, data []byte) (Content, error)) {
	formats = append(formats, format{magic, read})
}

// Read finds out what an attachment is. Its errors are of kind fault.Invalid, or
// fault.TooLarge. Only a registered format takes long, until the context ends at most.
func Read(ctx context.Context, data []byte) (Content, error) {
	if len(data) == 0 {
		return Content{}, fault.New(fault.Invalid, "empty_file", "", "The file has nothing in it.")
	}
	if kind := http.DetectContentType(data); Shown(kind) {
		return readImage(kind, data)
	}
	for _, f := range formats {
		if bytes.HasPrefix(data, []byte(f.magic)) {
			return f.read(ctx, data)
		}
	}
	return readText(data)
}

func readImage(kind string, data []byte) (Content, error) {
	c := Content{MediaType: kind}
	if kind == "image/webp" {
		c.Width, c.Height = webpSize(data)
	} else if config, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		c.Width, c.Height = config.Width, config.Height
	}
	if c.Width <= 0 || c.Height <= 0 {
		return Content{}, fault.New(fault.Invalid, "unsupported_attachment", "", "The file begins like a picture (%s), and its size can't be read. It is damaged: send another copy.", kind)
	}
	return c, nil
}

// webpSize reads the size that the header of a WebP picture says, or zeros.
func webpSize(data []byte) (width, height int) {
	if len(data) < 30 {
		return 0, 0
	}
	le16 := func(i int) int { return int(data[i]) | int(data[i+1])<<8 }
	switch string(data[12:16]) {
	case "VP8 ": // lossy: 14 bits each, after the start code
		return le16(26) & 0x3FFF, le16(28) & 0x3FFF
	case "VP8L": // lossless: 14 bits each, less one
		bits := uint32(le16(21)) | uint32(le16(23))<<16
		return int(bits&0x3FFF) + 1, int(bits>>14&0x3FFF) + 1
	case "VP8X": // extended: 24 bits each, less one
		return (le16(24) | int(data[26])<<16) + 1, (le16(27) | int(data[29])<<16) + 1
	}
	return 0, 0
}

func readText(data []byte) (Content, error) {
	text := strings.TrimPrefix(string(data), "\uFEFF")
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable):
		return Content{}, fault.New(fault.Invalid, "unsupported_attachment", "",
			"The file is none that a model can read here. Send a picture (PNG, JPEG, GIF or WebP), a PDF, or text in UTF-8.")
	case len(text) > MaxText:
		return Content{}, fault.New(fault.TooLarge, "attachment_too_large", "", "The text has %s, and %s is the most. Send the part of it that matters.", fault.Bytes(len(text)), fault.Bytes(MaxText))
	}
	return Content{MediaType: "text/plain; charset=utf-8", Text: text}, nil
}

// unprintable tells the characters that text has none of.
func unprintable(r rune) bool {
	return r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f' && r != '\v' && r != '\x1b' && r != '\b'
}

// Name makes a name that can stand in a line: without a path, without control
// characters, and of MaxName characters at most.
func Name(given string) string {
	given = strings.ToValidUTF8(given, "")
	given = given[strings.LastIndexAny(given, `/\`)+1:]
	given = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, given)
	given = strings.Join(strings.Fields(given), " ")
	if runes := []rune(given); len(runes) > MaxName {
		given = strings.TrimRight(string(runes[:MaxName]), " ")
	}
	return given
}
