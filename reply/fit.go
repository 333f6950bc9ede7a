package reply

import (
	"context"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// mustFit refuses a request whose branch, with the messages that it brings,
// doesn't fit the model's window. Nothing is stored yet. A short branch costs one
// look at its head.
func (s *Service) mustFit(ctx context.Context, a *assignment, c tree.Conversation) error {
	settings, err := s.contexts.SettingsOf(c, a.window)
	if err != nil {
		return err
	}
	parent, brought := a.head, 0
	if len(a.request.Messages) > 0 && a.request.ParentID != nil {
		parent = *a.request.ParentID
	}
	for _, m := range a.request.Messages {
		cost, err := s.store.Cost(m.Body)
		if err != nil {
			return nil // the tree says why
		}
		brought += cost
	}
	available := settings.Budget().Available
	if parent == uuid.Nil {
		return fits(brought, available)
	}
	head, err := s.store.Message(ctx, c.ID, parent)
	if err != nil || int64(brought)+head.PathTokens <= int64(available) {
		return nil // if there is none, the tree says so
	}
	view, err := s.contexts.Context(ctx, c.ID, parent, a.window)
	if err != nil {
		return err
	}
	if !view.Complete {
		return errTooLong(int(min(int64(brought)+head.PathTokens, 1<<31)), available)
	}
	return fits(brought+view.Usage.ContextTokens, available)
}

func fits(tokens, available int) error {
	if tokens <= available {
		return nil
	}
	return errTooLong(tokens, available)
}

func errTooLong(tokens, available int) error {
	return fault.New(fault.Invalid, "prompt_too_long", "messages", "The input has %d tokens, and the model's window has room for %d. Shorten it, or let its older part be summarized.", tokens, available)
}

// compactFirst compacts the branch before it is answered, where the request asks
// for that. What goes wrong is logged: the branch is answered as it is.
func (s *Service) compactFirst(ctx context.Context, a *assignment) error {
	over := a.request.CompactOver
	if over < 0 {
		over = a.context.Usage.TriggerTokens
	}
	if over == 0 || a.context.Usage.ContextTokens <= over {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, s.cfg.CompactionTimeout)
	defer cancel()
	if a.unstored {
		f, err := s.contexts.Fold(bounded, a.context.Messages, a.window, summarize.Demand{})
		if err == nil && f.Summary != nil {
			a.context.Messages, a.compacted = f.Messages, &Compacted{SummaryID: uuid.Must(uuid.NewV7()), Message: f.Summary}
		}
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "a history was not compacted before its reply", "error", err)
		}
		return nil
	}
	k, err := s.contexts.Compact(bounded, a.request.ConversationID, a.head, summarize.TriggerRequest, &summarize.Demand{})
	if err != nil || k.Outcome != tree.OutcomeSaved {
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "a branch was not compacted before its reply", "conversation_id", a.request.ConversationID, "head_id", a.head, "error", err)
		}
		return nil
	}
	if err := s.readContext(ctx, a); err != nil {
		return err
	}
	if summary := a.context.Summary; summary != nil && summary.ID == k.SummaryID {
		a.compacted = &Compacted{SummaryID: k.SummaryID, Message: a.context.Messages[a.context.Counts.Prefix]}
	}
	return nil
}
