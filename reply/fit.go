package reply

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// mustFit refuses a branch that doesn't fit the model's window, with the messages
// that the request brings.
func (s *Service) mustFit(a *assignment, c tree.Conversation) error {
	window := a.window
	window.OutputTokens = 0 // the answer may be shorter
	settings, err := s.contexts.SettingsOf(c, window)
	if err != nil {
		return err
	}
	return fits(a.context.Whole(), settings.Budget().Available)
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

// TooLong is the error of a branch that lacks so many tokens in its context,
// because it doesn't fit the window.
func TooLong(missing int) error {
	return fault.New(fault.Invalid, "prompt_too_long", "messages", "The branch is %d tokens longer than its window, and can't be summarized now. Continue an earlier message, raise max_context_tokens, or send \"truncation\": \"auto\".", missing)
}

// due tells whether the request asks for a compaction of a branch like this.
func (a *assignment) due() bool {
	over := a.request.CompactOver
	if over < 0 {
		over = a.context.Usage.TriggerTokens
	}
	return over != 0 && a.context.Usage.ContextTokens > over
}

// compactFirst compacts the branch before it is answered. What goes wrong is
// logged: the branch is answered as it is.
func (s *Service) compactFirst(ctx context.Context, a *assignment) error {
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
