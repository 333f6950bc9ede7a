package openai

import (
	"errors"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// signerOf returns the installation's signer.
func signerOf(r *server.Request) (*Signer, error) {
	key, err := r.Store().DeriveKey(r.Context(), "compaction items")
	if err != nil {
		return nil, err
	}
	return NewSigner(key)
}

// compacted adds the item of a summary that was made for the answer to head. There
// is none where the summary was deleted since: its text is gone, too.
func (t *Turn) compacted(r *server.Request, c *reply.Compacted, head uuid.UUID) error {
	if c == nil {
		return nil
	}
	body := c.Message
	if t.Node.Conversation != uuid.Nil { // what is kept of an answer mustn't outlast the summary
		_, message, err := r.Contexts().SummaryMessage(r.Context(), t.Node.Conversation, c.SummaryID)
		if errors.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		body = message
	}
	item, err := signedItem(r, SignedCompaction{NodeID{t.Node.Conversation, c.SummaryID}, head, chat.Read(body).Text()})
	t.Compaction = item
	return err
}

func signedItem(r *server.Request, c SignedCompaction) (*CompactionItem, error) {
	signer, err := signerOf(r)
	if err != nil {
		return nil, err
	}
	item := NewCompactionItem(c.Summary, signer.Sign(c))
	return &item, nil
}

// compacts tells whether an entry is a compaction item, in full or by its id.
func (e Entry) compacts() bool {
	return e.Content != "" || e.Reference != nil && e.Reference.Kind == KindCompaction
}

// open reads an entry that is a compaction item.
func (e Entry) open(r *server.Request) (SignedCompaction, error) {
	if e.Content == "" {
		return SignedCompaction{Summary: e.Reference.NodeID}, nil
	}
	signer, err := signerOf(r)
	if err != nil {
		return SignedCompaction{}, err
	}
	c, err := signer.Verify(e.Content)
	if known := fault.Of(err); known != nil {
		err = fault.New(known.Kind, known.Code, e.path().member(known.Field).String(), "%s", known.Detail)
	}
	return c, err
}

func (e Entry) path() *fieldPath { return (*fieldPath)(nil).element("input", e.At) }

// compactedAt gives the message at which a branch goes on after a compaction item:
// nil where the summary is gone, or was never on a branch of this tenant's.
func compactedAt(r *server.Request, e Entry) (*tree.Message, error) {
	c, err := e.open(r)
	if err != nil || c.Summary.Conversation == uuid.Nil {
		return nil, err
	}
	s, err := r.Store().Summary(r.Context(), c.Summary.Conversation, c.Summary.Node)
	if err == nil {
		if c.Head == uuid.Nil {
			c.Head = s.AnchorID
		}
		var m tree.Message
		if m, err = r.Store().Message(r.Context(), c.Summary.Conversation, c.Head); err == nil {
			return &m, nil
		}
	}
	if errors.Is(err, fault.NotFound) {
		err = nil
	}
	return nil, err
}

// compactedText is the message by which a model reads what a compaction item
// stands for.
func compactedText(r *server.Request, e Entry) (*chat.Message, error) {
	c, err := e.open(r)
	if err != nil {
		return nil, err
	}
	if e.Content == "" {
		_, message, err := r.Contexts().SummaryMessage(r.Context(), c.Summary.Conversation, c.Summary.Node)
		if errors.Is(err, fault.NotFound) {
			absent := NoItem(e.Reference.String())
			return nil, fault.New(fault.Invalid, absent.Code, e.path().member("id").String(), "%s", absent.Detail)
		}
		if err != nil {
			return nil, err
		}
		return chat.Read(message), nil
	}
	m, err := chat.Parse(marshal(wireMessage{Role: chat.User, Content: marshal(c.Text)}))
	if known := fault.Of(err); known != nil {
		err = fault.New(known.Kind, known.Code, e.path().member("encrypted_content").String(), "%s", known.Detail)
	}
	return m, err
}
