package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A printer writes results as Markdown or JSON, and remarks on what goes on to
// another place. The first write that fails fails all that follow, and Flush
// returns its error.
type printer struct {
	*bufio.Writer
	remarks io.Writer
}

func newPrinter(results, remarks io.Writer) *printer {
	return &printer{bufio.NewWriter(results), remarks}
}

// Line writes a line of results.
func (p *printer) Line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// Remark writes a line at once.
func (p *printer) Remark(format string, args ...any) { fmt.Fprintf(p.remarks, format+"\n", args...) }

// JSON writes a value, indented.
func (p *printer) JSON(v any) error {
	e := json.NewEncoder(p)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Table writes rows as a Markdown table. The first row is the head. The first
// column is set to the left, and the others to the right.
func (p *printer) Table(rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		line := fmt.Sprintf("| %-*s |", widths[0], row[0])
		rule := "|" + strings.Repeat("-", widths[0]+2) + "|"
		for i, cell := range row[1:] {
			line += fmt.Sprintf(" %*s |", widths[i+1], cell)
			rule += strings.Repeat("-", widths[i+1]+1) + ":|"
		}
		p.Line("%s", line)
		if n == 0 {
			p.Line("%s", rule)
		}
	}
}

// thousands is a number with commas between its thousands.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
