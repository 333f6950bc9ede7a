package openai

import (
	"errors"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

// compactedFor gives the summary that was made for the answer to head in a
// conversation; nil for none, and where the summary was deleted since: its text is
// gone, too.
func compactedFor(r *server.Request, conversation uuid.UUID, c *reply.Compacted, head uuid.UUID) (*wire.Compaction, error) {
	if c == nil {
		return nil, nil
	}
	body := c.Message
	if conversation != uuid.Nil { // what is kept of an answer mustn't outlast the summary
		_, message, err := r.Contexts().SummaryMessage(r.Context(), conversation, c.SummaryID)
		if errors.Is(err, fault.NotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		body = message
	}
	return &wire.Compaction{Summary: wire.NodeID{Conversation: conversation, Node: c.SummaryID}, Head: head, Text: chat.Read(body).Text()}, nil
}

// compactedAt gives the message at which a branch goes on after a compaction item:
// nil where the summary is gone, or was never on a branch of this tenant's.
func compactedAt(r *server.Request, c wire.Compaction) (*recognize.Message, error) {
	if c.Summary.Conversation == uuid.Nil {
		return nil, nil
	}
	s, err := r.Store().Summary(r.Context(), c.Summary.Conversation, c.Summary.Node)
	if err == nil {
		if c.Head == uuid.Nil {
			c.Head = s.AnchorID
		}
		if _, err = r.Store().Message(r.Context(), c.Summary.Conversation, c.Head); err == nil {
			return &recognize.Message{ConversationID: c.Summary.Conversation, ID: c.Head}, nil
		}
	}
	if errors.Is(err, fault.NotFound) {
		err = nil
	}
	return nil, err
}

// compactedText is the message by which a model reads what a compaction item
// stands for.
func compactedText(r *server.Request, e wire.Entry) (*chat.Message, error) {
	if e.Compaction.Text != "" {
		return e.Compaction.Message(), nil
	}
	_, message, err := r.Contexts().SummaryMessage(r.Context(), e.Node.Conversation, e.Node.Node)
	if errors.Is(err, fault.NotFound) {
		err = noEntry(e)
	}
	return chat.Read(message), err
}
