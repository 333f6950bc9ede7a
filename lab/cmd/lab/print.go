package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A printer writes results as text or JSON, and remarks on what goes on to
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

// Table writes rows in columns. The first row is the head.
func (p *printer) Table(rows [][]string) {
	w := tabwriter.NewWriter(p, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush() // p keeps its error
}
