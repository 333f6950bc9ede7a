package terminal

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// MinText is the smallest width of text beside other columns. The line becomes
// wider than the console where it must.
const MinText = 16

// A Column is one column of a table.
type Column struct {
	Name  string
	Width int  // at least; it grows with its cells
	Right bool // numbers, flush right
	Cut   bool // text of others: one line, cut to what the columns before it leave
}

// Table writes rows under the names of their columns. Only the last column may
// be Cut.
func (c *Console) Table(columns []Column, rows [][]string) {
	widths := make([]int, len(columns))
	names := make([]string, len(columns))
	left := 0 // of the last column
	for i, column := range columns {
		names[i] = column.Name
		widths[i] = max(column.Width, ansi.StringWidth(column.Name))
		if i == len(columns)-1 {
			break
		}
		for _, row := range rows {
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
		left += widths[i] + len(between)
	}
	line := func(cells []string) string {
		var b strings.Builder
		for i, cell := range cells {
			last := i == len(cells)-1
			switch blanks := widths[i] - ansi.StringWidth(cell); {
			case last && columns[i].Cut:
				b.WriteString(OneLine(cell, max(MinText, c.Width-left)))
			case last:
				b.WriteString(cell)
			case columns[i].Right:
				b.WriteString(strings.Repeat(" ", blanks) + cell + between)
			default:
				b.WriteString(cell + strings.Repeat(" ", blanks) + between)
			}
		}
		return strings.TrimRight(b.String(), " ")
	}
	c.Line("%s", c.Dim(line(names)))
	for _, row := range rows {
		c.Line("%s", line(row))
	}
}

// between stands between two columns.
const between = "  "
