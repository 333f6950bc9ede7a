package reply

import (
	"bytes"
	"context"
	"encoding/json"
	"math"

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
	parent, available := a.head, settings.Budget().Available
	if len(a.request.Messages) > 0 && a.request.ParentID != nil {
		parent = *a.request.ParentID
	}
	above := 0 // tokens of the whole path
	if parent != uuid.Nil {
		head, err := s.store.Message(ctx, c.ID, parent)
		if err != nil {
			return nil // the tree says why
		}
		above = int(min(head.PathTokens, math.MaxInt32))
	}
	bodies := make([]json.RawMessage, len(a.request.Messages))
	for i, m := range a.request.Messages {
		bodies[i] = m.Body
	}
	if above+atMost(bodies) <= available {
		return nil
	}
	brought := 0
	for _, body := range bodies {
		cost, err := s.store.Cost(body)
		if err != nil {
			return nil // the tree says why
		}
		brought += cost
	}
	if parent == uuid.Nil || above+brought <= available {
		return fits(above+brought, available)
	}
	view, err := s.contexts.Context(ctx, c.ID, parent, a.window)
	if err != nil {
		return err
	}
	if view.Complete { // with the summaries that there are
		above = view.Usage.ContextTokens
	}
	return fits(above+brought, available)
}

// atMost is how many tokens messages have at most. To count them takes as long as
// it takes to read them, and most are far from any limit: no token is shorter than
// a byte, and an image costs more than the address that it may be.
func atMost(bodies []json.RawMessage) (n int) {
	const perImage = 1000
	for _, body := range bodies {
		n += len(body) + perImage*bytes.Count(body, []byte("image_url"))
	}
	return n
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
