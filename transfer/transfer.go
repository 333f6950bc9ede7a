// Package transfer reads and writes conversations in files: the exports of
// other chat programs, chat-completions message lists, and Coppice's own
// JSONL, which loses nothing either way.
//
// A format is a parser from a stream to [format.Conversation] values; each is a
// package below transfer/format. What comes after is the same for all:
// package mend checks and repairs the conversation, ids derive from the
// source's so that the same file twice adds nothing, and the store takes one
// conversation after the other. Memory is bounded by the largest conversation of
// a file, not by the file.
package transfer

import (
	"context"
	"io"
	"iter"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/format/coppice"
	"github.com/coppice-chat/coppice/transfer/format/markdown"
	"github.com/coppice-chat/coppice/tree"
)

// What a report of Import is made of.
type (
	Note   = format.Note
	Action = format.Action
	Kind   = format.Kind
)

// An Exporter reads a whole conversation. *tree.Store is one.
type Exporter = coppice.Exporter

// Export writes a conversation as Coppice's own JSONL, as [coppice.Export] does.
func Export(ctx context.Context, from Exporter, conversationID uuid.UUID, w io.Writer) error {
	return coppice.Export(ctx, from, conversationID, w)
}

// Markdown writes a branch for people, as [markdown.Write] does.
func Markdown(w io.Writer, c tree.Conversation, branch iter.Seq2[tree.Message, error]) error {
	return markdown.Write(w, c, branch)
}
