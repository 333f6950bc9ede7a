package summarize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// record begins the record of a compaction, which so far changes nothing.
func record(a assessment, req compactionRequest) tree.Compaction {
	v := a.view
	k := tree.Compaction{
		ConversationID: v.ConversationID, ID: uuid.Must(uuid.NewV7()), HeadID: v.HeadID, Trigger: string(req.trigger),
		MessagesBefore: contextMessages(v), TokensBefore: contextTokens(v), Attempts: json.RawMessage("[]"), Settings: a.settings.json(),
	}
	if v.Summary != nil {
		k.PriorSummaryID = v.Summary.ID
	}
	if a.over != nil { // the context has it, and what comes after its cutoff
		k.RemadeID = a.over.ID
		k.MessagesBefore = len(v.Prefix) + 1 + a.plan.Tail
		k.TokensBefore = tree.Tokens(v.Prefix) + a.over.Tokens + tree.Tokens(v.Tail[len(v.Tail)-a.plan.Tail:])
	}
	k.MessagesAfter, k.TokensAfter = k.MessagesBefore, k.TokensBefore
	if req.demand != nil {
		k.Instructions = req.demand.Instructions
	}
	return k
}

// json is the settings as a record has them. Recall changes no compaction, and
// is left out.
func (s Settings) json() json.RawMessage {
	raw, _ := json.Marshal(struct { // numbers and strings always marshal
		Settings
		Recall *bool `json:"recall,omitempty"` // stands for that of Settings
	}{Settings: s})
	return raw
}

// conclude decides what a compaction came to, and completes its record. Only two
// outcomes come after it: the store finds under the conversation's lock that a
// summary was overtaken (superseded, stale), or that it can't be stored.
func conclude(k *tree.Compaction, a assessment, pending pendingSummary) {
	if a.plan == nil {
		k.Outcome, k.Reason = tree.OutcomeNothingToDo, string(a.reason)
		return
	}
	k.AnchorID, k.CutoffID, k.FoldedMessages, k.FoldedTokens = pending.plan.AnchorID, pending.plan.CutoffID, len(pending.plan.Fold), pending.plan.FoldTokens
	k.Model = pending.model
	attempted(k, pending.attempts)
	switch {
	case pending.gone:
		k.Outcome, k.Reason = tree.OutcomeStale, "The messages to summarize were deleted meanwhile."
	case pending.summary == nil:
		k.Outcome, k.Reason = tree.OutcomeFailed, whyNone(pending.attempts)
		if a.over == nil && a.settings.Digest == DigestWhenNeeded && a.fits() {
			k.Reason += " The branch fits its window, so its messages stay as they are."
		}
	case !pending.gains() && !pending.all:
		k.Outcome, k.Reason = tree.OutcomeNoGain, fmt.Sprintf("The summary's message has %d tokens, and what it would replace %d.", pending.summary.Tokens, pending.plan.Replaced)
	case a.over != nil && pending.goal != uuid.Nil:
		k.Outcome, k.Reason = tree.OutcomeSaved, fmt.Sprintf("A step on the way to a summary that is made again: %d messages folded.", len(pending.plan.Fold))
	case a.over != nil:
		k.Outcome, k.TokensAfter = tree.OutcomeSaved, k.TokensBefore-a.over.Tokens+pending.summary.Tokens
		k.Reason = fmt.Sprintf("Made again from %d messages, %d → %d tokens.", len(pending.plan.Fold), a.over.Tokens, pending.summary.Tokens)
	default:
		k.Outcome, k.TokensAfter = tree.OutcomeSaved, k.TokensBefore-pending.plan.Replaced+pending.summary.Tokens+pending.turn
		k.MessagesAfter = len(a.view.Prefix) + 1 + pending.plan.Tail
		k.Reason = fmt.Sprintf("%d messages folded, %d → %d tokens.", len(pending.plan.Fold), k.TokensBefore, k.TokensAfter)
		cut := 0
		for _, k := range pending.plan.Kept {
			cut += min(k.Limit, 1)
		}
		if cut > 0 {
			k.Reason += fmt.Sprintf(" Of the messages kept word for word, %d are cut in the middle.", cut)
		}
		k.Reason = strings.TrimSpace(k.Reason + " " + a.capped)
	}
}

// attempted notes the calls of models in a record.
func attempted(k *tree.Compaction, attempts []prompt.Attempt) {
	if len(attempts) > 0 {
		k.Attempts, _ = json.Marshal(attempts) // numbers and strings always marshal
	}
	for _, a := range attempts {
		k.PromptTokens += a.PromptTokens
		k.CompletionTokens += a.CompletionTokens
	}
}

func whyNone(attempts []prompt.Attempt) string {
	if len(attempts) == 0 {
		return "There was no model to ask, and the settings don't let the offline digest stand in here."
	}
	last := attempts[len(attempts)-1]
	return fmt.Sprintf("No summarizer gave a summary. The last, %s: %s.", last.Model, last.Error)
}

// A Trouble is what an error of a compaction means for the next attempt. A
// model's mistake is no error: it is an outcome, and the branch backs off.
type Trouble int

// Kinds of Trouble.
const (
	TroubleNone    Trouble = iota
	TroubleGone            // the branch is no longer there
	TroubleRefused         // the result can't be stored, and never will be
	TroubleEnded           // the caller's time is over, or it went away
	TroubleAway            // the database is away or in trouble: the same again may go well, and nothing speaks against the branch
)

// TroubleOf returns the kind of an error. A timeout of the caller and one of a
// slow connection have the same name. The error is the caller's only if ctx has
// ended.
func TroubleOf(ctx context.Context, err error) Trouble {
	switch {
	case err == nil:
		return TroubleNone
	case ctx.Err() != nil:
		return TroubleEnded
	case errors.Is(err, fault.NotFound):
		return TroubleGone
	case fault.Refused(err), errors.Is(err, fault.Permanent):
		return TroubleRefused
	}
	return TroubleAway
}
