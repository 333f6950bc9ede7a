package summarize

import (
	"context"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A Branch is a branch that was read to be continued: its conversation, and what
// contexts are made of.
type Branch struct {
	Conversation tree.Conversation

	view    tree.View
	read    int // budget of tokens that the view was read with
	service *Service
}

// Branch reads a branch and its conversation, in one round trip. It reads as much
// as a context of w takes. The conversation may have no messages yet if headID is
// uuid.Nil.
func (s *Service) Branch(ctx context.Context, conversationID, headID uuid.UUID, w Window) (_ *Branch, err error) {
	defer fault.Wrap(&err, "summarize.Branch(%s, head %s)", conversationID, headID)
	settings, err := w.over(s.settings)
	if err != nil {
		return nil, err
	}
	b := &Branch{read: settings.Budget().Available, service: s}
	b.Conversation, b.view, err = s.store.ViewIn(ctx, conversationID, headID, int64(b.read))
	return b, err
}

// NoBranch returns the branch that a new root continues.
func (s *Service) NoBranch(c tree.Conversation) *Branch {
	return &Branch{Conversation: c, view: tree.NoBranch(c), service: s}
}

// Context returns what Service.Context will return for the last of next, once
// these messages are stored below the branch's head. They must be checked
// (tree.Store.Checked). Without them it is the context of the head. It reads
// nothing, unless w has more room than the branch was read with.
func (b *Branch) Context(ctx context.Context, w Window, next []tree.NewMessage) (_ Context, err error) {
	defer fault.Wrap(&err, "summarize.Branch.Context")
	settings, err := b.service.windowOf(b.view, w)
	if err != nil {
		return Context{}, err
	}
	if available := settings.Budget().Available; b.view.Above > 0 && available > b.read {
		if b.view, err = b.service.store.View(ctx, b.view.ConversationID, b.view.HeadID, int64(available)); err != nil {
			return Context{}, err
		}
		b.read = available
	}
	return build(b.view.With(next), settings, b.service.count), nil
}
