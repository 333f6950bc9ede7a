package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// plainWidth is how wide output is that doesn't go to a terminal.
const plainWidth = 100

// A console is where a command writes: results to standard output, which is
// buffered, and everything else to standard error. The first write that failed
// fails all that follow, and Flush returns its error.
type console struct {
	*bufio.Writer           // results
	errors        io.Writer // progress and remarks
	width         int       // columns
	styled        bool      // bold and dim show
	progress      bool      // standard error is a terminal
}

func newConsole(out, errors *os.File) *console {
	c := &console{Writer: bufio.NewWriterSize(out, 1<<16), errors: errors, width: plainWidth}
	c.progress = term.IsTerminal(int(errors.Fd()))
	if term.IsTerminal(int(out.Fd())) {
		c.styled = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if width, _, err := term.GetSize(int(out.Fd())); err == nil && width > 0 {
			c.width = max(width, 40)
		}
	}
	return c
}

// JSON writes one thing as JSON, indented.
func (c *console) JSON(v any) error {
	text, err := indentedJSON(v)
	c.WriteString(text)
	return err
}

// indentedJSON is v as JSON, as text.
func indentedJSON(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.String(), err
}

// compactJSON is v on one line.
func compactJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Line writes one line of results.
func (c *console) Line(format string, args ...any) {
	fmt.Fprintf(c, format+"\n", args...)
}

// Remark writes a line to standard error.
func (c *console) Remark(format string, args ...any) {
	fmt.Fprintf(c.errors, format+"\n", args...)
}

func (c *console) bold(s string) string { return c.style("1", s) }
func (c *console) dim(s string) string  { return c.style("2", s) }

func (c *console) style(code, s string) string {
	if !c.styled || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// printable takes control characters out of text that others wrote, so that it
// can't steer the terminal. Line ends and tabs stay.
func printable(s string) string {
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

// oneLine is text as one line of at most width columns; the mark of a cut
// counts.
func oneLine(s string, width int) string {
	s = strings.Join(strings.Fields(printable(s)), " ")
	if width <= 0 {
		return ""
	}
	if uniseg.StringWidth(s) <= width {
		return s
	}
	var b strings.Builder
	used := 0
	for rest, state := s, -1; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > width-1 {
			break
		}
		used += w
		b.WriteString(cluster)
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// pad fills s with blanks to a width in columns.
func pad(s string, width int) string {
	if n := width - uniseg.StringWidth(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// count is "1 message" or "2 messages", with the thousands set apart.
func count(n int, noun string) string {
	if n != 1 {
		if plural, ok := plurals[noun]; ok {
			noun = plural
		} else {
			noun += "s"
		}
	}
	return thousands(int64(n)) + " " + noun
}

var plurals = map[string]string{"leaf": "leaves", "summary": "summaries"}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
