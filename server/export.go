package server

import (
	"bufio"
	"io"
	"mime"
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
	name, head := "jsonl", uuid.Nil
	if given := r.Query("format"); given != nil {
		name = *given
	}
	form, ok := transfer.FormNamed(name)
	if !ok {
		return nil, problemf(CodeInvalidParameter, "format", "%q is no format. Ask for %s.", clip(name), transfer.FormNames(func(transfer.Form) bool { return true }))
	}
	if given := r.Query("head_id"); given != nil {
		if !form.Branch {
			return nil, problemf(CodeInvalidParameter, "head_id", "It goes with format %s: %s has every branch.", transfer.FormNames(ofBranch), form.Name)
		}
		if head, err = parseHead(*given); err != nil {
			return nil, err
		}
	}
	ctx, store := r.Context(), r.Store()
	c, err := store.Conversation(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.Query("head_id") != nil && head == uuid.Nil {
		if head, err = store.Head(ctx, id); err != nil {
			return nil, err
		}
	}
	// By the primary: the store may read from a replica.
	if err := r.server.cfg.Store.For(r.who).Admin().Audit(ctx, tree.AuditEvent{Action: tree.ActionConversationExported, ConversationID: id, SubjectID: head, Detail: name}); err != nil {
		return nil, err
	}
	return exportAnswer{
		contentType: form.ContentType, file: form.FileName(c),
		write: func(w io.Writer) error { return form.Write(ctx, store, c, head, w) },
	}, nil
}

func ofBranch(f transfer.Form) bool { return f.Branch }

// exportAnswer is a file that is written as it is read.
type exportAnswer struct {
	contentType, file string
	write             func(io.Writer) error
}

// Write writes the file. An error before the first piece is sent becomes a
// problem, as with a tree.
func (a exportAnswer) Write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.file}))
	out := bufio.NewWriterSize(w, streamBuffer)
	if err := a.write(out); err != nil {
		return err
	}
	return out.Flush()
}
