package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/tree"
)

func exportConversation(r *Request) (Answer, error) {
	id, err := r.ID("conversation_id")
	if err != nil {
		return nil, err
	}
	format, head := "jsonl", r.Query("head_id")
	if given := r.Query("format"); given != nil {
		format = *given
	}
	switch {
	case format != "jsonl" && format != "markdown":
		return nil, problemf(CodeInvalidParameter, "format", "%q is no format. Ask for jsonl or markdown.", clip(format))
	case format == "markdown":
		return exportMarkdown(r, id, head)
	case head != nil:
		return nil, problemf(CodeInvalidParameter, "head_id", "It goes with format=markdown: jsonl has every branch.")
	}
	return exportAnswer{
		contentType: "application/jsonl", file: id.String() + ".jsonl",
		write: func(w io.Writer) error { return transfer.Export(r.Context(), r.Store(), id, w) },
	}, nil
}

func exportMarkdown(r *Request, id uuid.UUID, headID *string) (Answer, error) {
	ctx, store := r.Context(), r.Store()
	c, err := store.Conversation(ctx, id)
	if err != nil {
		return nil, err
	}
	head := c.HeadID
	if headID != nil {
		given, err := parseHead(*headID)
		switch {
		case err != nil:
			return nil, err
		case given != uuid.Nil:
			head = given
		case head == uuid.Nil:
			_, err := store.Head(ctx, id) // says what is missing
			return nil, err
		}
	}
	return exportAnswer{
		contentType: "text/markdown; charset=utf-8", file: id.String() + ".md",
		write: func(w io.Writer) error { return transfer.Markdown(w, c, branch(ctx, store, id, head)) },
	}, nil
}

// branch reads a branch from the root to the head, a page at a time. The store
// gives pages from the head back, so all but the last are read twice: once to
// find where the one above begins, once to be given away.
func branch(ctx context.Context, store *tree.Store, conversationID, head uuid.UUID) iter.Seq2[tree.Message, error] {
	return func(yield func(tree.Message, error) bool) {
		if head == uuid.Nil { // a conversation without messages
			return
		}
		read := func(cursor string) (tree.Page[tree.Message], error) {
			return store.Transcript(ctx, conversationID, head, tree.Paging{Limit: tree.MaxPage, Cursor: cursor})
		}
		cursors := []string{""}
		page, err := read("")
		for err == nil && page.Next != "" {
			cursors = append(cursors, page.Next)
			page, err = read(page.Next)
		}
		for i, cursor := range slices.Backward(cursors) {
			if err == nil && i < len(cursors)-1 {
				page, err = read(cursor)
			}
			if err != nil {
				yield(tree.Message{}, err)
				return
			}
			for _, m := range page.Data {
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

// exportAnswer is a file that is written as it is read.
type exportAnswer struct {
	contentType, file string
	write             func(io.Writer) error
}

// Write writes the file. An error before the first piece is sent becomes a
// problem, as with a tree.
func (a exportAnswer) Write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", a.file))
	out := bufio.NewWriterSize(w, streamBuffer)
	if err := a.write(out); err != nil {
		return err
	}
	return out.Flush()
}
