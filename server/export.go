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

func (h handlers) ExportConversation(ctx context.Context, r ExportConversationRequestObject) (ExportConversationResponseObject, error) {
	id, err := parseID(r.ConversationID, "conversation_id")
	if err != nil {
		return nil, err
	}
	store := h.store(ctx)
	format := "jsonl"
	if r.Params.Format != nil {
		format = *r.Params.Format
	}
	switch {
	case format != "jsonl" && format != "markdown":
		return nil, problemf(CodeInvalidParameter, "format", "%q is no format. Ask for jsonl or markdown.", clip(format))
	case format == "markdown":
		return exportMarkdown(ctx, store, id, r.Params.HeadID)
	case r.Params.HeadID != nil:
		return nil, problemf(CodeInvalidParameter, "head_id", "It goes with format=markdown: jsonl has every branch.")
	}
	return exportAnswer{
		contentType: "application/jsonl", file: id.String() + ".jsonl",
		write: func(w io.Writer) error { return transfer.Export(ctx, store, id, w) },
	}, nil
}

func exportMarkdown(ctx context.Context, store *tree.Store, id uuid.UUID, headID *string) (ExportConversationResponseObject, error) {
	c, err := store.Conversation(ctx, id)
	if err != nil {
		return nil, err
	}
	head := c.HeadID
	if headID != nil {
		if head, err = parseHead(*headID); err == nil && head == uuid.Nil {
			head, err = store.Head(ctx, id)
		}
		if err != nil {
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

// VisitExportConversationResponse writes the file. As with a tree, an error
// before the first piece is out becomes a problem.
func (a exportAnswer) VisitExportConversationResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", a.file))
	out := bufio.NewWriterSize(w, streamBuffer)
	if err := a.write(out); err != nil {
		return err
	}
	return out.Flush()
}
