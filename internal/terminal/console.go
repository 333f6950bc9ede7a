// Package terminal writes what people read on a terminal: lines, remarks, tables,
// texts beside each other, a progress bar, and the drawing of a tree. Widths are
// columns of a terminal, of which some characters take two and some take none.
//
// The package reads no environment and no flag, and knows no database.
package terminal

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// PlainWidth is the width of output that doesn't go to a terminal.
const PlainWidth = 100

// A Console is where a command writes. Results go to standard output, through a
// buffer. Everything else goes to standard error. After a write has failed, all
// writes that follow fail too, and Flush returns the first error.
type Console struct {
	*bufio.Writer           // results
	Errors        io.Writer // progress and remarks
	Width         int       // columns
	Styled        bool      // bold and dim show
	Interactive   bool      // Errors is a terminal
	Terminal      bool      // results go to a terminal
}

// New makes a Console. On a terminal it has the terminal's width, and has styles
// unless plain is set.
func New(out, errors *os.File, plain bool) *Console {
	c := &Console{Writer: bufio.NewWriterSize(out, 1<<16), Errors: errors, Width: PlainWidth}
	c.Interactive = term.IsTerminal(int(errors.Fd()))
	if term.IsTerminal(int(out.Fd())) {
		c.Terminal, c.Styled = true, !plain
		if width, _, err := term.GetSize(int(out.Fd())); err == nil && width > 0 {
			c.Width = max(width, 40)
		}
	}
	return c
}

// Clear empties a terminal's screen, for results that take the place of others.
func (c *Console) Clear() {
	fmt.Fprint(c, ansi.EraseEntireScreen+ansi.CursorHomePosition)
}

// Line writes one line of results.
func (c *Console) Line(format string, args ...any) {
	fmt.Fprintf(c, format+"\n", args...)
}

// Remark writes a line to standard error.
func (c *Console) Remark(format string, args ...any) {
	fmt.Fprintf(c.Errors, format+"\n", args...)
}

// Bold returns bold text, where the console has styles.
func (c *Console) Bold(s string) string { return c.style(ansi.NewStyle().Bold(), s) }

// Dim returns faint text, where the console has styles.
func (c *Console) Dim(s string) string { return c.style(ansi.NewStyle().Faint(), s) }

func (c *Console) style(style ansi.Style, s string) string {
	if !c.Styled || s == "" {
		return s
	}
	return style.Styled(s)
}
