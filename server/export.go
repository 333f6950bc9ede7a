package server

import (
	"bufio"
	"fmt"
	"io"
	"net/http"

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
	branch := store.Branch(ctx, id, head, 0)
	if head == uuid.Nil { // a conversation without messages
		branch = func(func(tree.Message, error) bool) {}
	}
	return exportAnswer{
		contentType: "text/markdown; charset=utf-8", file: id.String() + ".md",
		write: func(w io.Writer) error { return transfer.Markdown(w, c, branch) },
	}, nil
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
