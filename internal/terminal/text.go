package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// Printable removes control characters from text that other people wrote, so that
// the text can't steer the terminal. Line ends and tabs stay.
func Printable(s string) string {
	return strings.Map(printable, strings.ReplaceAll(s, "\r\n", "\n"))
}

func printable(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
		return unicode.ReplacementChar
	}
	return r
}

// Export returns a writer of results that are mostly written to a file or a pipe,
// byte for byte. On a terminal they become Printable. Close it at their end; the
// Console goes on.
func (c *Console) Export() io.WriteCloser {
	if !c.Terminal {
		return nopCloser{c}
	}
	return transform.NewWriter(c, runes.Map(func(r rune) rune {
		if r == '\r' {
			return ' '
		}
		return printable(r)
	}))
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// OneLine returns text as one line of at most width columns, the mark of a cut
// included.
func OneLine(s string, width int) string {
	s = strings.Join(strings.Fields(Printable(s)), " ")
	switch {
	case width <= 0:
		return ""
	case ansi.StringWidth(s) <= width:
		return s
	}
	return strings.TrimRight(ansi.Truncate(s, width-1, ""), " ") + "…"
}

// Pad fills s with blanks to a width in columns.
func Pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-ansi.StringWidth(s)))
}

// Count returns "1 message" or "2 messages", with commas between thousands.
func Count(n int, noun string) string {
	if n != 1 {
		if plural, ok := plurals[noun]; ok {
			noun = plural
		} else {
			noun += "s"
		}
	}
	return Thousands(n) + " " + noun
}

var plurals = map[string]string{"leaf": "leaves", "summary": "summaries"}

// Thousands returns a number with commas between thousands: 1,234,567.
func Thousands[N ~int | ~int64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
