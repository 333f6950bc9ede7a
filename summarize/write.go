package summarize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize/audit"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// A pendingSummary is the result of a call of the summarizer, before it is stored.
type pendingSummary struct {
	plan     *Plan     // what the summary stands for: all that was planned, or a first part of it
	goal     uuid.UUID // cutoff of all that was planned, where plan is a part of it
	summary  *tree.NewSummary
	model    string
	attempts []prompt.Attempt
	gone     bool         // messages were deleted meanwhile
	readID   uuid.UUID    // deepest message that the summarizer read
	version  tree.Version // of that message, from before it was read
	all      bool         // what was asked for is a summary of all, whatever it gains
	turn     int          // tokens of the assistant's word that follows the summary in a context
}

// away tells whether there is no summary because no provider answered.
func (p *pendingSummary) away() bool {
	return p.summary == nil && all(p.attempts, func(a prompt.Attempt) bool { return a.Away })
}

// spared tells whether no model was so much as asked.
func (p *pendingSummary) spared() bool {
	return p.summary == nil && all(p.attempts, func(a prompt.Attempt) bool { return a.Spared })
}

func all(attempts []prompt.Attempt, is func(prompt.Attempt) bool) bool {
	return len(attempts) > 0 && !slices.ContainsFunc(attempts, func(a prompt.Attempt) bool { return !is(a) })
}

// gains tells whether the context is smaller with the summary.
func (p *pendingSummary) gains() bool { return p.summary.Tokens+p.turn < p.plan.Replaced }

// take makes the first n messages of the assessment's plan the plan of the
// pending summary.
func (p *pendingSummary) take(a assessment, n int) {
	p.plan, p.goal = a.plan, uuid.Nil
	if n < len(a.plan.Fold) { // then the summarizer sees nothing of what comes after them
		p.plan, p.goal = planTo(a.view, a.settings, n, n-1), a.plan.CutoffID
	}
}

// write has the planned summary written, or the first part of it where a call
// takes no more. Messages that are gone are no error, nor is a summarizer that
// fails: the pendingSummary says so.
func (s *Service) write(ctx context.Context, a assessment, req compactionRequest, id uuid.UUID) (pending pendingSummary, err error) {
	defer func() {
		if errors.Is(err, fault.NotFound) {
			pending.gone, err = true, nil
		}
	}()
	models, cancel := req.forModels(ctx)
	defer cancel()
	pending.take(a, s.portion(models, a, a.plan.Fold, req))
	pending.readID = pending.plan.AnchorID
	if pending.version, err = s.store.Version(ctx, a.view.ConversationID, pending.readID); err != nil {
		return pending, err
	}
	in, err := s.input(ctx, a.view, pending.plan, id)
	if err != nil {
		return pending, err
	}
	asked := ""
	if req.demand != nil {
		asked, pending.all = req.demand.Instructions, req.demand.All
	}
	in.Instructions = instructions(a.settings, asked)
	r, err := s.ask(ctx, models, in, a, req)
	if err != nil {
		return pending, err
	}
	if err = s.compose(ctx, a, r, &pending); err != nil {
		return pending, err
	}
	// A branch that doesn't fit needs a summary that gains something, by whom ever.
	if pending.summary != nil && !pending.gains() && pending.model != digest.Name && !a.fits() && s.mayDigest(a, req) {
		err = s.compose(ctx, a, s.summarizeWith(ctx, s.digest, in), &pending)
	}
	return pending, err
}

// fits tells whether the branch fits its window as it is.
func (a assessment) fits() bool { return contextTokens(a.view) <= a.settings.Budget().Available }

// mayDigest tells whether the offline digest may stand in where no model gives a
// summary. What is to be made again has one already. Where this Service asks no models
// but the settings are those of one that does, a request lays no digest over a summary
// of a model: that is left to the other.
func (s *Service) mayDigest(a assessment, req compactionRequest) bool {
	switch a.settings.Digest {
	case DigestAlways:
		return true
	case DigestWhenNeeded:
		prior := a.view.Summary
		if s.summarizer == nil && req.trigger == TriggerRequest && prior != nil && prior.Range.Model != digest.Name {
			return false
		}
		return a.over == nil && !a.fits()
	}
	return false
}

// forModels is the context in which models are asked: it ends when their time is
// over, and the digest's comes.
func (req compactionRequest) forModels(ctx context.Context) (context.Context, context.CancelFunc) {
	if req.models.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, req.models)
}

// unboundedTimeout is how long a Summarizer may take that isn't Bounded.
const unboundedTimeout = time.Minute

// portion is how many of the messages to fold one step reads. The digest takes
// any number at once.
func (s *Service) portion(models context.Context, a assessment, fold []tree.PathMessage, req compactionRequest) int {
	if bounded, ok := s.asked(a, req).(Bounded); ok && models.Err() == nil {
		return min(max(bounded.Portion(fold, a.plan.Target), 1), len(fold))
	}
	return len(fold)
}

// asked is who writes the summary: one of the models where the request names it; nil
// where no model may be asked.
func (s *Service) asked(a assessment, req compactionRequest) Summarizer {
	if a.capped != "" {
		return nil
	}
	if req.with != nil {
		return req.with
	}
	return s.summarizer
}

// ask gives a summary by the models, or else by the digest where that may stand
// in; one without text where neither gives any. Whatever models do, it ends when
// their time is over, and its only error is that of ctx.
func (s *Service) ask(ctx, models context.Context, in prompt.Input, a assessment, req compactionRequest) (r prompt.Result, err error) {
	if with := s.asked(a, req); with != nil && models.Err() == nil {
		if _, ok := with.(Bounded); !ok {
			var cancel context.CancelFunc
			models, cancel = context.WithTimeout(models, unboundedTimeout)
			defer cancel()
		}
		r = s.summarizeWith(models, with, in)
	}
	switch {
	case r.Text != "":
		return r, nil
	case ctx.Err() != nil:
		return r, ctx.Err()
	case !s.mayDigest(a, req):
		return r, nil
	}
	attempts := r.Attempts
	r = s.summarizeWith(ctx, s.digest, in)
	r.Attempts = append(attempts, r.Attempts...)
	return r, nil
}

// summarizeWith asks a Summarizer and holds it to its promises. The result has
// no text where there is no summary, and its attempts say why. The list of files at the
// end of a summary is no matter of the Summarizer's.
func (s *Service) summarizeWith(ctx context.Context, with Summarizer, in prompt.Input) prompt.Result {
	if in.Prior, in.Paths = prompt.CutPaths(in.Prior); in.Paths != "" {
		in.PriorTokens = s.count.Count(in.Prior)
	}
	r, err := with.Summarize(access.With(ctx, s.store.TenantID()), in)
	if n := r.Taken; err == nil && (n < 1 || n > len(in.Fold) || n < len(in.Fold) && in.Fold[n].Role == tree.RoleTool || r.Text == "") {
		err = fmt.Errorf("a summary of %d bytes, which takes %d of %d messages, is none", len(r.Text), n, len(in.Fold))
		r.Attempts = append(r.Attempts, prompt.Attempt{Model: r.Model, Error: err.Error()})
	}
	if err == nil {
		in.Fold = in.Fold[:r.Taken]
	}
	_, audited := with.(Cascade)
	if _, own := with.(digest.Summarizer); err == nil && !audited && !own { // whose sentences are those of the messages
		found := audit.Of(in, r.Text)
		if err = found.Problem; err != nil {
			r.Attempts = append(r.Attempts, prompt.Attempt{Model: r.Model, Error: err.Error(), Audit: &found.Audit})
		}
	}
	switch {
	case err == nil:
		r.Text = prompt.WithPaths(r.Text, in, s.count)
		return r
	case len(r.Attempts) == 0 && !errors.Is(err, errNoModels):
		r.Attempts = []prompt.Attempt{{Model: fmt.Sprintf("%T", with), Error: err.Error()}}
	}
	return prompt.Result{Attempts: r.Attempts}
}

// input reads the text that the summarizer needs.
func (s *Service) input(ctx context.Context, v tree.View, p *Plan, compactionID uuid.UUID) (prompt.Input, error) {
	stays := prompt.Stays{}
	for _, k := range p.Kept {
		stays[k.ID] = k.Limit == 0
	}
	var ids []uuid.UUID
	for _, m := range slices.Concat(p.Fold, p.LookAhead, v.Kept) {
		ids = append(ids, m.ID)
	}
	read, err := s.store.Messages(ctx, v.ConversationID, ids)
	if err != nil {
		return prompt.Input{}, err
	}
	in := prompt.Input{Nonce: prompt.Nonce(compactionID), TargetTokens: p.Target, Fold: read[:len(p.Fold)], Stays: stays}
	for _, m := range in.Fold {
		if !m.Pinned && prompt.Idle(m) {
			delete(stays, m.ID) // see compose
		}
	}
	in.LookAhead = read[len(p.Fold):][:len(p.LookAhead)]
	for _, m := range read[len(p.Fold)+len(p.LookAhead):] {
		if stays[m.ID] {
			in.Kept = append(in.Kept, m)
		} else {
			in.Leaving = append(in.Leaving, m)
		}
	}
	if in.Files, err = s.filesOf(ctx, in.Fold); err != nil {
		return prompt.Input{}, err
	}
	if v.Summary != nil {
		in.Prior = prompt.Unwrap(v.Summary.Body)
		in.PriorTokens = s.count.Count(in.Prior)
	}
	return in, nil
}

// compose adds a summarizer's result to a pending summary: its attempts, and the node of
// the summary, if there is one. The node's body is the message that a context shows, kept
// text and all: an export carries it whole, and whoever counts it counts what it costs.
func (s *Service) compose(ctx context.Context, a assessment, r prompt.Result, pending *pendingSummary) error {
	pending.attempts = append(pending.attempts, r.Attempts...)
	pending.summary, pending.model = nil, r.Model
	if r.Text == "" {
		return nil
	}
	pending.take(a, r.Taken)
	p := pending.plan
	ids := make([]uuid.UUID, len(p.Kept))
	for i, k := range p.Kept {
		ids[i] = k.ID
	}
	messages, err := s.store.Messages(ctx, a.view.ConversationID, ids)
	if err != nil {
		return err
	}
	kept, ids := make([]prompt.Kept, 0, len(ids)), ids[:0]
	for i, m := range messages {
		if m.Pinned || !prompt.Idle(m) {
			kept, ids = append(kept, prompt.Kept{Message: m, Limit: p.Kept[i].Limit}), append(ids, m.ID)
		}
	}
	body, dropped := prompt.Wrap(r.Text, kept, s.count)
	pending.summary = &tree.NewSummary{
		AnchorID: p.AnchorID, Body: body, Tokens: messageTokens + s.count.Count(chat.Read(body).Text()), ReadID: pending.readID, ReadVersion: pending.version,
		Range: tree.SummaryRange{LastSummarizedID: p.CutoffID, PriorSummaryID: p.PriorID, KeptIDs: ids[dropped:], Model: r.Model},
	}
	after := a.view
	after.Summary = &tree.Summary{}
	pending.turn = acknowledged(after, len(p.Fold), s.count)
	return nil
}

// messageTokens frames a message, as package tree counts.
const messageTokens = 3
