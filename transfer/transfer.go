// Package transfer reads and writes conversations in files: the exports of other
// chat programs, lists of chat-completions messages, and Coppice's own JSONL,
// which loses nothing in either direction.
//
// A format is a parser from a stream to [format.Conversation] values, in a
// package below transfer/format. Everything after the parser is the same for all
// formats. Package normalize checks and repairs the conversation. Its ids are derived
// from the source's ids, so that the same file adds nothing a second time. The
// store takes one conversation after the other. Memory is bounded by the largest
// conversation of a file, and not by the file.
package transfer

import (
	"context"
	"io"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/format/coppice"
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
