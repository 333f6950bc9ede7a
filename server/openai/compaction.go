package openai

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

// compactedFor gives the item of a summary that was made for the answer to head in a
// conversation; nil for none, and where the summary was deleted since: its text is
// gone, too.
func compactedFor(r *server.Request, conversation uuid.UUID, c *reply.Compacted, head uuid.UUID) (*wire.CompactionItem, error) {
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
	item := wire.Compaction{Summary: wire.NodeID{Conversation: conversation, Node: c.SummaryID}, Head: head, Text: chat.Read(body).Text()}.Item()
	return &item, nil
}

// opens reads an entry that is a compaction item.
func opens(e wire.Entry) (wire.Compaction, error) {
	if e.Content == "" {
		return wire.Compaction{Summary: e.Node}, nil
	}
	c, err := wire.ReadCompaction(e.Content)
	return c, inContent(e, err)
}

// compactedAt gives the message at which a branch goes on after a compaction item:
// nil where the summary is gone, or was never on a branch of this tenant's.
func compactedAt(r *server.Request, e wire.Entry) (*recognize.Message, error) {
	c, err := opens(e)
	if err != nil || c.Summary.Conversation == uuid.Nil {
		return nil, err
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
	c, err := opens(e)
	if err != nil {
		return nil, err
	}
	if e.Content == "" {
		_, message, err := r.Contexts().SummaryMessage(r.Context(), c.Summary.Conversation, c.Summary.Node)
		if errors.Is(err, fault.NotFound) {
			return nil, noEntry(e)
		}
		if err != nil {
			return nil, err
		}
		return chat.Read(message), nil
	}
	m, err := chat.Parse(chat.Text(chat.User, c.Text).Raw)
	return m, inContent(e, err)
}

// inContent names the content of a compaction item as what is wrong.
func inContent(e wire.Entry, err error) error {
	if known := fault.Of(err); known != nil {
		return fault.New(known.Kind, known.Code, fmt.Sprintf("input[%d].encrypted_content", e.At), "%s", known.Detail)
	}
	return err
}
