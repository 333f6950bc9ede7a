package summarize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// Config sets a Service up. The zero value works: default settings, no model,
// hence the offline digest.
type Config struct {
	Settings    Settings              // of the server; the zero value stands for Defaults
	Summarizers []Summarizer          // asked one after the other
	NoDigest    bool                  // where every summarizer fails, don't fall back on the offline digest
	Counter     tokens.Counter        // nil: o200k, as package tree counts
	Logger      *slog.Logger          // nil: none. Records hold counts and ids, never text
	Observe     func(tree.Compaction) // called with every compaction that ran, for metrics; nil for none
	Tracing     trace.TracerProvider  // makes a span of each compaction; nil for none. Spans hold counts and ids, never text
}

// A Service gives contexts and compacts branches. It is safe for use by
// several goroutines, and holds nothing between calls but its configuration.
type Service struct {
	store    *tree.Store
	settings Settings
	cascade  cascade
	log      *slog.Logger
	observe  func(tree.Compaction)
	tracer   trace.Tracer
}

// New makes a Service over a store. Settings that can't stand are a
// *SettingsError.
func New(store *tree.Store, cfg Config) (*Service, error) {
	if cfg.Settings == (Settings{}) {
		cfg.Settings = Defaults()
	}
	if err := cfg.Settings.Validate(); err != nil {
		return nil, fmt.Errorf("summarize.New: %w", err)
	}
	if cfg.Counter == nil {
		cfg.Counter = tokens.O200k()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Tracing == nil {
		cfg.Tracing = noop.NewTracerProvider()
	}
	if cfg.Observe == nil {
		cfg.Observe = func(tree.Compaction) {}
	}
	return &Service{
		store: store, settings: cfg.Settings, log: cfg.Logger, observe: cfg.Observe, tracer: cfg.Tracing.Tracer(tracerName),
		cascade: cascade{summarizers: cfg.Summarizers, noDigest: cfg.NoDigest, count: cfg.Counter},
	}, nil
}

// ForTenant gives the same Service for another tenant's conversations.
func (s *Service) ForTenant(tenantID string) *Service {
	return s.over(s.store.ForTenant(tenantID))
}

func (s *Service) over(store *tree.Store) *Service {
	c := *s
	c.store = store
	return &c
}

// A Window replaces what the settings say of the model that reads the context.
type Window struct {
	MaxContextTokens int  // 0: as the settings say
	ReservedTokens   *int // nil: as the settings say, and in proportion where MaxContextTokens is less than theirs
}

func (w Window) over(s Settings) (Settings, error) {
	if window := w.MaxContextTokens; window != 0 {
		// The reserve that goes with a large window may be all of a small one.
		if window > 0 && window < s.MaxContextTokens {
			s.ReservedTokens = int(float64(s.ReservedTokens) / float64(s.MaxContextTokens) * float64(window))
		}
		s.MaxContextTokens = window
	}
	if w.ReservedTokens != nil {
		s.ReservedTokens = *w.ReservedTokens
	}
	switch {
	case s.MaxContextTokens < 1 || s.MaxContextTokens > math.MaxInt32:
		return s, &SettingsError{"max_context_tokens", "It must be 1 or more."}
	case s.ReservedTokens < 0 || s.ReservedTokens >= s.MaxContextTokens:
		return s, &SettingsError{"reserved_tokens", fmt.Sprintf("It must be 0 or more and less than max_context_tokens, which is %d.", s.MaxContextTokens)}
	}
	return s, nil
}

// Context gives what a model should read for a head. It costs what the context
// holds: one query, which reads nothing above the cutoff or the budget. Where
// the conversation's settings give a larger window than the server's, a branch
// that fills the smaller one takes a second query.
//
// A head that is no message of the conversation is a tree.ErrNotFound, a
// window that can't be a *SettingsError. Options are for the View that the
// context is made of: with tree.Into it holds as long as that.
func (s *Service) Context(ctx context.Context, conversationID, headID uuid.UUID, w Window, opts ...tree.ViewOption) (_ Context, err error) {
	defer wrap(&err, "Context(%s, head %s)", conversationID, headID)
	settings, err := w.over(s.settings)
	if err != nil {
		return Context{}, err
	}
	read := settings.Budget().Available
	v, err := s.store.View(ctx, conversationID, headID, int64(read), opts...)
	if err != nil {
		return Context{}, err
	}
	if settings, err = s.windowOf(v, w); err != nil {
		return Context{}, err
	}
	if available := settings.Budget().Available; v.Above > 0 && available > read {
		if v, err = s.store.View(ctx, conversationID, headID, int64(available), opts...); err != nil {
			return Context{}, err
		}
	}
	return build(v, settings, s.cascade.count), nil
}

// windowOf gives the settings that hold for a view: the server's, the
// conversation's over them, and the caller's window over both.
func (s *Service) windowOf(v tree.View, w Window) (Settings, error) {
	settings := s.settings
	if !isEmptyObject(v.Settings) {
		// A conversation's settings were checked when they were stored. Where
		// the server's have changed since, reading must still work.
		if merged, err := settings.With(v.Settings); err == nil {
			settings = merged
		} else {
			s.log.Warn("a conversation's settings don't stand with the server's, which are used instead", "conversation_id", v.ConversationID, "error", err)
		}
	}
	return w.over(settings)
}

func isEmptyObject(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "{}" }

// CheckSettings tells whether a conversation may have these settings: a
// *SettingsError says what can't stand with the server's.
func (s *Service) CheckSettings(overrides json.RawMessage) error {
	_, err := s.settings.With(overrides)
	return err
}

// wholeBranch is a budget that no branch is over.
const wholeBranch = math.MaxInt64 / 2

// plan reads the branch and plans its compaction. The view has no bodies, and
// its messages' tokens are what they cost in a context.
func (s *Service) plan(ctx context.Context, conversationID, headID uuid.UUID, w Window, d *Demand) (tree.View, Settings, *Plan, Reason, error) {
	v, err := s.store.View(ctx, conversationID, headID, wholeBranch, tree.Skeleton())
	if err != nil {
		return v, Settings{}, nil, "", err
	}
	settings, err := s.windowOf(v, w)
	if err != nil {
		return v, settings, nil, "", err
	}
	v.Tail = weigh(v.Tail, s.cascade.count)
	p, reason := MakePlan(v, settings, d)
	return v, settings, p, reason, nil
}

// Trigger says who asks for a compaction.
type Trigger string

const (
	TriggerAppend  Trigger = "append"  // a background job after an append
	TriggerReply   Trigger = "reply"   // a reply that wouldn't fit
	TriggerRequest Trigger = "request" // somebody
)

// Compact compacts a branch: it plans, has the summary written, and saves it if
// nothing has overtaken it. The record of what came of it is stored and
// returned; only the database's failures and ctx's end are errors. With a
// demand, it folds what may be folded even below the trigger.
//
// The database isn't held while a model is called. It takes as long as the
// summarizers do, each bounded by its timeout.
func (s *Service) Compact(ctx context.Context, conversationID, headID uuid.UUID, t Trigger, d *Demand) (_ tree.Compaction, err error) {
	defer wrap(&err, "Compact(%s, head %s)", conversationID, headID)
	k, _, err := s.compact(ctx, conversationID, headID, t, Window{}, d)
	return k, err
}

// compact is Compact for a window other than the settings'. It also tells what
// room the branch has now, where it knows.
func (s *Service) compact(ctx context.Context, conversationID, headID uuid.UUID, t Trigger, w Window, d *Demand) (k tree.Compaction, left room, err error) {
	ctx, end := s.begin(ctx, conversationID, headID, t)
	defer func() { end(k, err) }()
	if err := d.check(); err != nil {
		return k, left, err
	}
	start := time.Now()
	v, settings, p, reason, err := s.plan(ctx, conversationID, headID, w, d)
	if err != nil {
		return k, left, err
	}
	k = record(v, settings, t, d)
	var summary *tree.NewSummary
	if p == nil {
		k.Outcome, k.Reason = tree.OutcomeNothingToDo, string(reason)
	} else if summary, err = s.write(ctx, v, p, d, &k); err != nil {
		return tree.Compaction{}, left, err
	}
	k.Duration = time.Since(start)
	// A background check that found nothing to do leaves no record: there is
	// one after many appends.
	if p == nil && t == TriggerAppend {
		return k, distance(v, settings), nil
	}
	if k, err = s.store.RecordCompaction(ctx, k, summary); err != nil {
		return tree.Compaction{}, left, err
	}
	if k.Outcome == tree.OutcomeSaved {
		left = roomBeside(v.Prefix, k.TokensAfter, p.Tail, settings)
	}
	s.report(ctx, k)
	return k, left, nil
}

// record begins the record of a compaction, which so far changes nothing.
func record(v tree.View, settings Settings, t Trigger, d *Demand) tree.Compaction {
	k := tree.Compaction{
		ConversationID: v.ConversationID, ID: uuid.Must(uuid.NewV7()), HeadID: v.HeadID, Trigger: string(t),
		MessagesBefore: len(v.Prefix) + len(v.Tail), TokensBefore: contextTokens(v), Attempts: json.RawMessage("[]"),
	}
	if v.Summary != nil {
		k.MessagesBefore++
		k.PriorSummaryID = v.Summary.ID
	}
	k.MessagesAfter, k.TokensAfter = k.MessagesBefore, k.TokensBefore
	k.Settings, _ = json.Marshal(settings) // numbers and strings always marshal
	if d != nil {
		k.Instructions = d.Instructions
	}
	return k
}

// write has the planned summary written and checks that it gains something. It
// notes in k what happened, and gives the node to save, nil where there is
// none.
func (s *Service) write(ctx context.Context, v tree.View, p *Plan, d *Demand, k *tree.Compaction) (*tree.NewSummary, error) {
	k.AnchorID, k.CutoffID, k.FoldedMessages, k.FoldedTokens = p.AnchorID, p.CutoffID, len(p.Fold), p.FoldTokens
	in, kept, err := s.input(ctx, v, p, k.ID)
	if errors.Is(err, tree.ErrNotFound) {
		k.Outcome, k.Reason = tree.OutcomeStale, "The messages to summarize were deleted meanwhile."
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if d != nil {
		in.Instructions = d.Instructions
	}
	text, model, attempts, err := s.cascade.run(ctx, in)
	if k.Attempts, _ = json.Marshal(attempts); attempts == nil {
		k.Attempts = json.RawMessage("[]")
	}
	for _, a := range attempts {
		k.PromptTokens += a.PromptTokens
		k.CompletionTokens += a.CompletionTokens
	}
	if errors.Is(err, errNoSummary) {
		k.Outcome, k.Reason = tree.OutcomeFailed, lastError(attempts)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	k.Model = model
	summary, after := compose(text, model, p, kept, k.TokensBefore, s.cascade.count)
	if summary.Tokens >= p.Replaced {
		k.Outcome, k.Reason = tree.OutcomeNoGain, fmt.Sprintf("The summary's message has %d tokens, and what it would replace %d.", summary.Tokens, p.Replaced)
		return nil, nil
	}
	k.Outcome, k.TokensAfter = tree.OutcomeSaved, after
	k.MessagesAfter = len(v.Prefix) + 1 + p.Tail
	k.Reason = fmt.Sprintf("%d messages folded, %d → %d tokens.", len(p.Fold), k.TokensBefore, after)
	return summary, nil
}

// input reads the text that the summarizer needs, and that of the kept
// messages.
func (s *Service) input(ctx context.Context, v tree.View, p *Plan, compactionID uuid.UUID) (Input, []tree.Message, error) {
	ids := make([]uuid.UUID, 0, len(p.Fold)+len(p.LookAhead)+len(p.Kept))
	for _, m := range p.Fold {
		ids = append(ids, m.ID)
	}
	for _, m := range p.LookAhead {
		ids = append(ids, m.ID)
	}
	for _, m := range p.Kept {
		ids = append(ids, m.ID)
	}
	read, err := s.store.Messages(ctx, v.ConversationID, ids)
	if err != nil {
		return Input{}, nil, err
	}
	in := Input{
		Nonce: fenceNonce(compactionID), TargetTokens: p.Target,
		Fold: read[:len(p.Fold)], LookAhead: read[len(p.Fold) : len(p.Fold)+len(p.LookAhead)],
	}
	if v.Summary != nil {
		in.Prior = unwrapSummary(v.Summary.Body)
		in.PriorTokens = s.cascade.count.Count(in.Prior)
	}
	return in, read[len(p.Fold)+len(p.LookAhead):], nil
}

// compose makes the node of a summary, and tells what the context has with it.
// The node's body is the message that a context shows, kept text and all: an
// export carries it whole, and whoever counts it counts what it costs.
func compose(text, model string, p *Plan, kept []tree.Message, before int, count tokens.Counter) (*tree.NewSummary, int) {
	shown := make([]tree.Message, len(kept))
	ids := make([]uuid.UUID, len(kept))
	for i, m := range kept {
		shown[i] = cutTo(m, keptCharacters(m, p.Kept[i].Limit, count))
		ids[i] = m.ID
	}
	body := wrapSummary(text, shown)
	cost := messageTokens + count.Count(readSpoken(tree.Message{Role: tree.RoleUser, Body: body}).text)
	return &tree.NewSummary{
		AnchorID: p.AnchorID, Body: body, Tokens: cost,
		Range: tree.SummaryRange{LastSummarizedID: p.CutoffID, PriorSummaryID: p.PriorID, KeptIDs: ids, Model: model},
	}, before - p.Replaced + cost
}

// messageTokens frames a message, as package tree counts.
const messageTokens = 3

func lastError(attempts []Attempt) string {
	if len(attempts) == 0 {
		return "There is no summarizer, and the offline digest is switched off."
	}
	last := attempts[len(attempts)-1]
	return fmt.Sprintf("No summarizer gave a summary. The last, %s: %s.", last.Model, last.Error)
}

func (s *Service) report(ctx context.Context, k tree.Compaction) {
	level := slog.LevelInfo
	if k.Outcome == tree.OutcomeFailed {
		level = slog.LevelWarn
	}
	s.log.Log(ctx, level, "compaction", "conversation_id", k.ConversationID, "compaction_id", k.ID, "head_id", k.HeadID, "trigger", k.Trigger,
		"outcome", k.Outcome, "reason", k.Reason, "model", k.Model, "folded_messages", k.FoldedMessages,
		"tokens_before", k.TokensBefore, "tokens_after", k.TokensAfter, "prompt_tokens", k.PromptTokens,
		"completion_tokens", k.CompletionTokens, "duration_ms", k.Duration.Milliseconds())
	s.observe(k)
}

// EnsureFits makes a context fit a model's window before a reply: where it
// doesn't and compaction is auto, the branch is compacted within the time
// limit. What goes wrong is logged and never fails the reply, which then goes
// out with the context as it is.
func (s *Service) EnsureFits(ctx context.Context, conversationID, headID uuid.UUID, w Window, limit time.Duration) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, settings, p, _, err := s.plan(bounded, conversationID, headID, w, nil)
	if err == nil && (p == nil || p.TokensBefore <= settings.Budget().Available) {
		return // it fits, or nothing can be done
	}
	if err == nil {
		_, _, err = s.compact(bounded, conversationID, headID, TriggerReply, w, nil)
	}
	if err != nil {
		s.log.WarnContext(ctx, "a branch was not compacted before its reply", "conversation_id", conversationID, "head_id", headID, "error", err)
	}
}

// wrap names the method and its arguments, once.
func wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("summarize."+format+": %w", append(args, *err)...)
	}
}
