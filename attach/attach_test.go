package attach

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

// TestRead holds what is found of pictures in every format.
func TestRead(t *testing.T) {
	t.Parallel()
	picture := image.NewPaletted(image.Rect(0, 0, 123, 45), color.Palette{color.Black, color.White})
	encode := func(f func(*bytes.Buffer) error) []byte {
		var b bytes.Buffer
		check.NoError(t, f(&b))
		return b.Bytes()
	}
	webp := func(kind, header string) []byte {
		return []byte("RIFF\x40\x00\x00\x00WEBP" + kind + header + strings.Repeat("\x00", 20))
	}
	for _, test := range []struct {
		kind string
		data []byte
	}{
		{"image/png", encode(func(b *bytes.Buffer) error { return png.Encode(b, picture) })},
		{"image/jpeg", encode(func(b *bytes.Buffer) error { return jpeg.Encode(b, picture, nil) })},
		{"image/gif", encode(func(b *bytes.Buffer) error { return gif.Encode(b, picture, nil) })},
		{"image/webp", webp("VP8 ", "\x20\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x7b\x00\x2d\x00")},
		{"image/webp", webp("VP8L", "\x20\x00\x00\x00\x2f\x7a\x00\x0b\x00")},
		{"image/webp", webp("VP8X", "\x0a\x00\x00\x00\x00\x00\x00\x00\x7a\x00\x00\x2c\x00\x00")},
	} {
		c, err := Read(t.Context(), test.data)
		if err != nil || c.MediaType != test.kind || c.Width != 123 || c.Height != 45 || !Shown(c.MediaType) || c.Text != "" {
			t.Errorf("%s (%.16q): %+v, %v", test.kind, test.data, c, err)
		}
	}
}

// TestReadText holds what is taken as text: UTF-8 without its byte order mark, up to
// MaxText bytes. Anything else is refused, with a reason.
func TestReadText(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("é", MaxText/2)
	for _, test := range []struct{ data, text, code string }{
		{data: "Hazel\r\n\tash\x1b[0m", text: "Hazel\r\n\tash\x1b[0m"},
		{data: "\uFEFFHazel", text: "Hazel"},
		{data: "\uFEFF" + longest, text: longest},
		{data: longest + "x", code: "attachment_too_large"},
		{data: "", code: "empty_file"},
		{data: "Haz\x00el", code: "unsupported_attachment"},
		{data: "Gr\xfc\xdfe", code: "unsupported_attachment"},
	} {
		c, err := Read(t.Context(), []byte(test.data))
		if got := fault.Of(err); c.Text != test.text || (test.code == "") != (err == nil) || err != nil && (got.Code != test.code || got.Detail == "") {
			t.Errorf("%.20q of %d bytes: %d bytes of text, %v", test.data, len(test.data), len(c.Text), err)
		}
	}
}

// FuzzRead gives any bytes: what is taken is sound.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"", "x", "\xef\xbb\xbfx", "\x89PNG\r\n\x1a\n", "RIFF\x00\x00\x00\x00WEBPVP8 ", "GIF89a", "\xff\xd8\xff", "<svg/>", "a\x00b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Read(t.Context(), data)
		if err != nil {
			e := fault.Of(err)
			check.Need(t, fault.Refused(err) && e.Code != "" && e.Detail != "", "%q: %v", data, err)
			return
		}
		if Shown(c.MediaType) != (c.Width > 0 && c.Height > 0) || !utf8.ValidString(c.Text) || strings.Contains(c.Text, "\x00") || len(c.Text) > MaxText {
			t.Fatalf("%q: %+v", data, c)
		}
	})
}

// TestName holds that a name fits a line and a header, whatever was given.
func TestName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.String().Draw(t, "given")
		n := Name(given)
		if strings.ContainsAny(n, "/\\\n\r\x00") || utf8.RuneCountInString(n) > MaxName || !utf8.ValidString(n) || Name(n) != n {
			t.Fatalf("%q becomes %q", given, n)
		}
	})
	long := strings.Repeat("é", MaxName-1)
	for given, want := range map[string]string{
		"a.png": "a.png", `C:\x\b.png`: "b.png", "../../etc/passwd": "passwd", " a \n b ": "a b", "": "",
		"invoice\u202egnp.exe": "invoicegnp.exe", "\u2066a\u2069\u200f\u061c.png": "a.png", "a\u2028b\u0085c": "a bc",
		long + "xyz": long + "x", long + " xyz": long,
	} {
		got := Name(given)
		check.That(t, got == want, "%q becomes %q, want %q", given, got, want)
	}
}
