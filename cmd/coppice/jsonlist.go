package main

import (
	"encoding/json"
	"io"

	"github.com/coppice-chat/coppice/tree"
)

// A jsonList writes a list as the REST API answers with it, an item a line, as
// the items come.
type jsonList struct {
	w     io.Writer
	lead  string // members before the data, each with a comma after it
	items int
}

func (l *jsonList) add(item any) error {
	between := ",\n"
	if l.items == 0 {
		between = l.begin() + "\n"
	}
	l.items++
	if _, err := io.WriteString(l.w, between); err != nil {
		return err
	}
	b, err := compactJSON(item)
	if err != nil {
		return err
	}
	_, err = l.w.Write(b)
	return err
}

// end ends the list; next is the cursor of the page after it, or "".
func (l *jsonList) end(next string) error {
	tail := "\n]"
	if l.items == 0 {
		tail = l.begin() + "]"
	}
	cursor := []byte("null")
	if next != "" {
		var err error
		if cursor, err = json.Marshal(next); err != nil {
			return err
		}
	}
	_, err := io.WriteString(l.w, tail+`, "next_cursor": `+string(cursor)+"}\n")
	return err
}

func (l *jsonList) begin() string { return "{" + l.lead + `"data": [` }

// writePage writes a page that is in memory.
func writePage[T any](w io.Writer, page tree.Page[T]) error {
	l := jsonList{w: w}
	for _, item := range page.Data {
		if err := l.add(item); err != nil {
			return err
		}
	}
	return l.end(page.Next)
}
