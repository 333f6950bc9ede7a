package summarize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// A draft is what having a summary written came to.
type draft struct {
	plan     *Plan     // what the summary stands for: all that was planned, or a first part of it
	goal     uuid.UUID // cutoff of all that was planned, where plan is a part of it
	summary  *tree.NewSummary
	model    string
	attempts []prompt.Attempt
	gone     bool // messages were deleted meanwhile
	all      bool // what was asked for is a summary of all, whatever it gains
}

// away tells whether there is no summary because no provider answered.
func (d *draft) away() bool {
	return d.summary == nil && all(d.attempts, func(a prompt.Attempt) bool { return a.Away })
}

// spared tells whether no model was so much as asked.
func (d *draft) spared() bool {
	return d.summary == nil && all(d.attempts, func(a prompt.Attempt) bool { return a.Spared })
}

func all(attempts []prompt.Attempt, is func(prompt.Attempt) bool) bool {
	return len(attempts) > 0 && !slices.ContainsFunc(attempts, func(a prompt.Attempt) bool { return !is(a) })
}

// gains tells whether the context is smaller with the summary.
func (d *draft) gains() bool { return d.summary.Tokens < d.plan.Replaced }

// take makes the first n messages of the look's plan the draft's plan.
func (d *draft) take(l look, n int) {
	d.plan, d.goal = planFirst(l.view, l.settings, l.plan, n), uuid.Nil
	if n < len(l.plan.Fold) {
		d.goal = l.plan.CutoffID
	}
}

// write has the planned summary written, or the first part of it where a call
// takes no more. Messages that are gone are no error, nor is a summarizer that
// fails: the draft says so.
func (s *Service) write(ctx context.Context, l look, o order, id uuid.UUID) (d draft, err error) {
	defer func() {
		if errors.Is(err, fault.NotFound) {
			d.gone, err = true, nil
		}
	}()
	models, cancel := o.forModels(ctx)
	defer cancel()
	d.take(l, s.portion(models, l.plan, o))
	in, err := s.input(ctx, l.view, d.plan, id)
	if err != nil {
		return d, err
	}
	asked := ""
	if o.demand != nil {
		asked, d.all = o.demand.Instructions, o.demand.All
	}
	in.Instructions = instructions(l.settings, asked)
	r, err := s.ask(ctx, models, in, l, o)
	if err != nil {
		return d, err
	}
	if err = s.compose(ctx, l, r, &d); err != nil {
		return d, err
	}
	// A branch that doesn't fit needs a summary that gains something, by whom ever.
	if d.summary != nil && !d.gains() && d.model != digest.Name && !l.fits() && l.mayDigest(o) {
		err = s.compose(ctx, l, summarizeWith(ctx, s.digest, in), &d)
	}
	return d, err
}

// fits tells whether the branch fits its window as it is.
func (l look) fits() bool { return contextTokens(l.view) <= l.settings.Budget().Available }

// mayDigest tells whether the offline digest may stand in where no model gives a
// summary. What is to be made again has one already.
func (l look) mayDigest(o order) bool {
	switch l.settings.Digest {
	case DigestAlways:
		return o.trigger != TriggerHealing
	case DigestWhenNeeded:
		return l.over == nil && !l.fits()
	}
	return false
}

// forModels is the context in which models are asked: it ends when their time is
// over, and the digest's comes.
func (o order) forModels(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.models.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, o.models)
}

// unboundedTimeout is how long a Summarizer may take that isn't Bounded.
const unboundedTimeout = time.Minute

// portion is how many of the messages to fold one step reads. The digest takes
// any number at once.
func (s *Service) portion(models context.Context, p *Plan, o order) int {
	if bounded, ok := s.asked(o).(Bounded); ok && models.Err() == nil {
		return min(max(bounded.Portion(p.Fold, p.Target), 1), len(p.Fold))
	}
	return len(p.Fold)
}

// asked is who writes the summary: one of the models where the order says which.
func (s *Service) asked(o order) Summarizer {
	if o.with != nil {
		return o.with
	}
	if c, ok := s.summarizer.(Cascade); ok {
		c.noTrial = o.noTrial
		return c
	}
	return s.summarizer
}

// ask gives a summary by the models, or else by the digest where that may stand
// in; one without text where neither gives any. Whatever models do, it ends when
// their time is over, and its only error is that of ctx.
func (s *Service) ask(ctx, models context.Context, in prompt.Input, l look, o order) (r prompt.Result, err error) {
	if with := s.asked(o); with != nil && models.Err() == nil {
		if _, ok := with.(Bounded); !ok {
			var cancel context.CancelFunc
			models, cancel = context.WithTimeout(models, unboundedTimeout)
			defer cancel()
		}
		r = summarizeWith(models, with, in)
	}
	switch {
	case r.Text != "":
		return r, nil
	case ctx.Err() != nil:
		return r, ctx.Err()
	case !l.mayDigest(o):
		return r, nil
	}
	attempts := r.Attempts
	r = summarizeWith(ctx, s.digest, in)
	r.Attempts = append(attempts, r.Attempts...)
	return r, nil
}

// summarizeWith asks a Summarizer and holds it to its promises. The result has
// no text where there is no summary, and its attempts say why.
func summarizeWith(ctx context.Context, with Summarizer, in prompt.Input) prompt.Result {
	r, err := with.Summarize(ctx, in)
	if n := r.Taken; err == nil && (n < 1 || n > len(in.Fold) || n < len(in.Fold) && in.Fold[n].Role == tree.RoleTool || r.Text == "") {
		err = fmt.Errorf("a summary of %d bytes, which takes %d of %d messages, is none", len(r.Text), n, len(in.Fold))
		r.Attempts = append(r.Attempts, prompt.Attempt{Model: r.Model, Error: err.Error()})
	}
	switch {
	case err == nil:
		return r
	case len(r.Attempts) == 0 && !errors.Is(err, errNoModels):
		r.Attempts = []prompt.Attempt{{Model: fmt.Sprintf("%T", with), Error: err.Error()}}
	}
	return prompt.Result{Attempts: r.Attempts}
}

// input reads the text that the summarizer needs.
func (s *Service) input(ctx context.Context, v tree.View, p *Plan, compactionID uuid.UUID) (prompt.Input, error) {
	ids := make([]uuid.UUID, 0, len(p.Fold)+len(p.LookAhead))
	for _, m := range p.Fold {
		ids = append(ids, m.ID)
	}
	for _, m := range p.LookAhead {
		ids = append(ids, m.ID)
	}
	read, err := s.store.Messages(ctx, v.ConversationID, ids)
	if err != nil {
		return prompt.Input{}, err
	}
	fold, err := s.withFiles(ctx, read[:len(p.Fold)])
	if err != nil {
		return prompt.Input{}, err
	}
	in := prompt.Input{Nonce: prompt.Nonce(compactionID), TargetTokens: p.Target, Fold: fold, LookAhead: read[len(p.Fold):]}
	if v.Summary != nil {
		in.Prior = prompt.Unwrap(v.Summary.Body)
		in.PriorTokens = s.count.Count(in.Prior)
	}
	return in, nil
}

// compose adds a summarizer's result to a draft: its attempts, and the node of
// the summary, if there is one.
func (s *Service) compose(ctx context.Context, l look, r prompt.Result, d *draft) error {
	d.attempts = append(d.attempts, r.Attempts...)
	if d.summary = nil; r.Text == "" {
		d.model = ""
		return nil
	}
	d.model = r.Model
	d.take(l, r.Taken)
	ids := make([]uuid.UUID, len(d.plan.Kept))
	for i, kept := range d.plan.Kept {
		ids[i] = kept.ID
	}
	kept, err := s.store.Messages(ctx, l.view.ConversationID, ids)
	if err != nil {
		return err
	}
	d.summary = compose(r, d.plan, kept, s.count)
	return nil
}

// compose makes the node of a summary. The node's body is the message that a
// context shows, kept text and all: an export carries it whole, and whoever
// counts it counts what it costs.
func compose(r prompt.Result, p *Plan, messages []tree.Message, count tokens.Counter) *tree.NewSummary {
	kept, ids := make([]prompt.Kept, len(messages)), make([]uuid.UUID, len(messages))
	for i, m := range messages {
		kept[i], ids[i] = prompt.Kept{Message: m, Limit: p.Kept[i].Limit}, m.ID
	}
	body, dropped := prompt.Wrap(r.Text, kept, count)
	return &tree.NewSummary{
		AnchorID: p.AnchorID, AnchorAt: p.AnchorAt, Body: body, Tokens: messageTokens + count.Count(chat.Read(body).Text()),
		Range: tree.SummaryRange{LastSummarizedID: p.CutoffID, PriorSummaryID: p.PriorID, KeptIDs: ids[dropped:], Model: r.Model},
	}
}

// messageTokens frames a message, as package tree counts.
const messageTokens = 3
