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

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/format/coppice"
	"github.com/coppice-chat/coppice/tree"
)

// What a report of Import is made of.
type (
	Note   = format.Note
	Action = format.Action
	Kind   = format.Kind
)

// Export writes a conversation as Coppice's own JSONL, as [coppice.Export] does.
func Export(ctx context.Context, from *tree.Store, conversationID uuid.UUID, w io.Writer) (err error) {
	defer fault.Wrap(&err, "transfer.Export(%s)", conversationID)
	c, nodes, err := from.Export(ctx, conversationID)
	if err != nil {
		return err
	}
	return coppice.Export(ctx, c, nodes, from.Attachments().One, w)
}
