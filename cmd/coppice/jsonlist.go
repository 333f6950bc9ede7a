package main

import (
	"context"
	"encoding/json"
	"io"
	"net/url"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/terminal"
)

// printJSON writes one thing as JSON, indented.
func printJSON(w io.Writer, v any) error {
	text, err := indentedJSON(v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
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

// writeJSON writes one thing that is JSON already, byte for byte.
func writeJSON(w io.Writer, b []byte) error {
	_, err := w.Write(append(b, '\n'))
	return err
}

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
	b, err := chat.Marshal(item)
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

// writePages writes as many pages of a list as the flags ask for, as one: as JSON, or by
// write. none is said of an empty list.
func writePages[T any](ctx context.Context, out *terminal.Console, c *client, o outputFlags, f pageFlags, path string, query url.Values, none string, write func(page[T])) error {
	if o.JSON {
		page, err := readPages[json.RawMessage](ctx, c, f, path, query)
		if err != nil {
			return err
		}
		return printList(out, "", page.Data, page.Next)
	}
	page, err := readPages[T](ctx, c, f, path, query)
	switch {
	case err != nil:
		return err
	case len(page.Data)+len(page.Conversations) == 0:
		out.Remark("%s", none)
	default:
		write(page)
		if page.Next != "" {
			out.Remark("There are more: --limit 0 shows all.")
		}
	}
	return nil
}

// printList prints a list that is in memory; lead is what jsonList has.
func printList[T any](w io.Writer, lead string, list []T, next string) error {
	l := jsonList{w: w, lead: lead}
	for _, item := range list {
		if err := l.add(item); err != nil {
			return err
		}
	}
	return l.end(next)
}
