package summarize

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// An Explanation says why a branch's context is as it is, and what a compaction
// would do now.
type Explanation struct {
	ConversationID  uuid.UUID          `json:"conversation_id"`
	HeadID          uuid.UUID          `json:"head_id"`
	Summaries       []ExplainedSummary `json:"summaries"`       // of the whole conversation, newest first
	Grafts          []ExplainedGraft   `json:"grafts"`          // of the context, oldest first
	DroppedPinIDs   []uuid.UUID        `json:"dropped_pin_ids"` // pinned messages that the summary folds and doesn't keep
	Usage           Usage              `json:"usage"`
	TokensToTrigger int                `json:"tokens_to_trigger"` // that may be added before a compaction is due; negative past it
	Plan            *ExplainedPlan     `json:"plan"`              // null where a compaction asked for now would do nothing
	Automatic       bool               `json:"automatic"`         // the settings by themselves ask for one now
	Reason          string             `json:"reason"`            // why they don't, or why there is no plan
	Settings        Settings           `json:"settings"`          // that hold for this conversation
	Warning         string             `json:"warning,omitempty"` // what is odd about them, or why no model is asked
}

// ExplainedSummary is a summary, and why it does or doesn't apply.
type ExplainedSummary struct {
	ContextSummary
	Applies bool   `json:"applies"`
	Reason  string `json:"reason"`
	Waits   bool   `json:"waits"` // to be made again from the messages: the offline digest made it, or went into it

	Audit *prompt.Audit `json:"audit"` // of the text that was saved; null for one of the digest, an import or a fork
}

// ExplainedGraft is a message that was brought from another branch.
type ExplainedGraft struct {
	MessageID uuid.UUID  `json:"message_id"`
	Grafted   tree.Graft `json:"grafted"`
}

// ExplainedPlan is a plan without its messages.
type ExplainedPlan struct {
	CutoffID          uuid.UUID   `json:"cutoff_id"`
	AnchorID          uuid.UUID   `json:"anchor_id"`
	PriorSummaryID    *uuid.UUID  `json:"prior_summary_id"`
	FoldMessages      int         `json:"fold_messages"`
	FoldTokens        int         `json:"fold_tokens"`
	LookAheadMessages int         `json:"look_ahead_messages"`
	TailMessages      int         `json:"tail_messages"`
	KeptIDs           []uuid.UUID `json:"kept_ids"`
	CutIDs            []uuid.UUID `json:"cut_ids"`         // of kept_ids: those of which only a part would stay, cut in the middle
	DroppedPinIDs     []uuid.UUID `json:"dropped_pin_ids"` // pinned messages that would be folded and not be kept: the pins' share of the window is full
	TargetTokens      int         `json:"target_tokens"`
}

// Explain returns which summary applies to a branch, why the others don't, how
// many tokens are left to the trigger, and what a compaction on demand would do
// now. A head of uuid.Nil is the active head. It reads the whole path, so the
// cost grows with the path.
func (s *Service) Explain(ctx context.Context, conversationID, headID uuid.UUID) (_ Explanation, err error) {
	defer fault.Wrap(&err, "summarize.Explain(%s, head %s)", conversationID, headID)
	a, err := s.assess(ctx, conversationID, headID, compactionRequest{demand: &Demand{}}, uuid.Nil)
	if err != nil {
		return Explanation{}, err
	}
	v, settings := a.view, a.settings
	_, automatic := MakePlan(v, settings, nil)
	if automatic == "" {
		if _, automatic, err = s.waits(ctx, a); err != nil {
			return Explanation{}, err
		}
	}
	usage := settings.usage(tree.Tokens(v.Prefix), contextTokens(v))
	e := Explanation{
		ConversationID: conversationID, HeadID: v.HeadID, Summaries: []ExplainedSummary{}, Grafts: []ExplainedGraft{}, DroppedPinIDs: []uuid.UUID{}, Settings: settings, Warning: settings.Warning(),
		Usage: usage, TokensToTrigger: usage.TriggerTokens - usage.ContextTokens, Plan: explainPlan(a.plan), Automatic: automatic == "" && a.plan != nil, Reason: string(automatic),
	}
	if a.plan == nil {
		e.Reason = string(a.reason)
	}
	if e.Grafts, err = s.grafts(ctx, v); err != nil {
		return Explanation{}, err
	}
	capped, err := s.overCost(ctx, conversationID, settings)
	if err != nil {
		return Explanation{}, err
	}
	e.Warning = strings.TrimSpace(e.Warning + " " + capped)
	summaries, err := s.store.Summaries().All(ctx, conversationID)
	if err != nil {
		return Explanation{}, err
	}
	onBranch, err := s.store.Summaries().OnBranch(ctx, conversationID, v.HeadID)
	if err != nil {
		return Explanation{}, err
	}
	attempts := map[uuid.UUID]json.RawMessage{}
	writings, err := s.store.Summaries().Writings(ctx, conversationID)
	if err != nil {
		return Explanation{}, err
	}
	for _, w := range writings {
		attempts[w.SummaryID] = w.Attempts
	}
	made, newest := madeByDigest(summaries, writings), map[uuid.UUID]bool{} // by id, by anchor
	for _, summary := range summaries {
		applies, why := whether(summary, v.Summary, slices.Contains(onBranch, summary.ID))
		waits := s.resummarizes(settings) && made[summary.ID] && !newest[summary.AnchorID]
		newest[summary.AnchorID] = true
		e.Summaries = append(e.Summaries, ExplainedSummary{*contextSummary(&summary), applies, why, waits, auditIn(attempts[summary.ID])})
	}
	if v.Summary != nil {
		e.DroppedPinIDs, err = s.store.Summaries().DroppedPins(ctx, conversationID, v.Summary.Range)
	}
	return e, err
}

// grafts are the messages of the tail that were brought from other branches, and whether
// those are there still.
func (s *Service) grafts(ctx context.Context, v tree.View) ([]ExplainedGraft, error) {
	var tail []tree.Message
	for _, m := range v.Tail {
		if m.Graft != nil {
			tail = append(tail, m.Message)
		}
	}
	out := make([]ExplainedGraft, len(tail))
	err := s.store.FindSources(ctx, v.ConversationID, tail)
	for i, m := range tail {
		out[i] = ExplainedGraft{m.ID, *m.Graft}
	}
	return out, err
}

// auditIn is the audit of the answer that became a summary: that of the last attempt.
func auditIn(raw json.RawMessage) *prompt.Audit {
	var attempts []prompt.Attempt
	if json.Unmarshal(raw, &attempts) != nil || len(attempts) == 0 {
		return nil
	}
	return attempts[len(attempts)-1].Audit
}

// whether says why a summary applies to a branch, or doesn't.
func whether(s tree.Summary, applicable *tree.Summary, onBranch bool) (bool, string) {
	switch {
	case applicable != nil && s.ID == applicable.ID:
		return true, "Its anchor is the deepest on this branch."
	case !onBranch:
		return false, "Its anchor is not on this branch, so it may have seen text of another."
	case applicable != nil && s.AnchorID == applicable.AnchorID:
		return false, "A newer summary has the same anchor."
	default:
		return false, "Another summary's anchor is deeper on this branch."
	}
}

func explainPlan(p *Plan) *ExplainedPlan {
	if p == nil {
		return nil
	}
	e := &ExplainedPlan{
		CutoffID: p.CutoffID, AnchorID: p.AnchorID, FoldMessages: len(p.Fold), FoldTokens: p.FoldTokens,
		LookAheadMessages: len(p.LookAhead), TailMessages: p.Tail, KeptIDs: []uuid.UUID{}, CutIDs: []uuid.UUID{}, DroppedPinIDs: []uuid.UUID{}, TargetTokens: p.Target,
	}
	if p.PriorID != uuid.Nil {
		e.PriorSummaryID = &p.PriorID
	}
	e.DroppedPinIDs = append(e.DroppedPinIDs, p.DroppedPins...)
	for _, k := range p.Kept {
		if e.KeptIDs = append(e.KeptIDs, k.ID); k.Limit > 0 {
			e.CutIDs = append(e.CutIDs, k.ID)
		}
	}
	return e
}

// Summary returns a summary's text as its writer gave it, without the wrapper
// of a context.
func (s *Service) Summary(ctx context.Context, conversationID, id uuid.UUID) (_ tree.Summary, text string, err error) {
	defer fault.Wrap(&err, "summarize.Summary(%s, %s)", conversationID, id)
	summary, err := s.store.Summaries().One(ctx, conversationID, id)
	return summary, prompt.Unwrap(summary.Body), err
}

// SummaryMessage returns a summary with the message that shows it in a context.
func (s *Service) SummaryMessage(ctx context.Context, conversationID, id uuid.UUID) (_ tree.Summary, message json.RawMessage, err error) {
	defer fault.Wrap(&err, "summarize.SummaryMessage(%s, %s)", conversationID, id)
	summary, err := s.store.Summaries().One(ctx, conversationID, id)
	if err != nil {
		return summary, nil, err
	}
	return summary, summaryMessage(&summary), nil
}

// summaryMessage is the message that shows a summary in a context. Nobody has looked whether
// what an import brought keeps to its tags.
func summaryMessage(s *tree.Summary) json.RawMessage {
	if o := s.Range.Origin; o != nil && !o.Merged {
		return prompt.ShownImported(s.Body)
	}
	return prompt.Shown(s.Body)
}
