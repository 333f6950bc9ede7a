package terminal

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Printable removes control characters from text that other people wrote, so that
// the text can't steer the terminal. Line ends and tabs stay.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

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

// Columns sets two texts beside each other, in lines of at most width columns.
func Columns(left, right string, width int) []string {
	const between = " │ "
	half := (width - ansi.StringWidth(between)) / 2
	a, b := wrap(Printable(left), half), wrap(Printable(right), half)
	lines := make([]string, max(len(a), len(b)))
	for i := range lines {
		l, r := "", ""
		if i < len(a) {
			l = a[i]
		}
		if i < len(b) {
			r = b[i]
		}
		lines[i] = strings.TrimRight(Pad(l, half)+between+r, " ")
	}
	return lines
}

// wrap breaks text into lines of at most width columns, between words or after
// a slash where it can. No line is narrower than a wide character.
func wrap(text string, width int) []string {
	text = strings.ReplaceAll(strings.TrimRight(text, "\n"), "\t", "    ")
	lines := strings.Split(ansi.Wrap(text, max(width, 2), "/"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return lines
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
