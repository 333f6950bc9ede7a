package summarize

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"sync"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// A Config sets up a Service. The zero value works: default settings and no
// model, so the offline digest writes the summaries.
type Config struct {
	Settings   Settings              // of the server; the zero value stands for Defaults
	WindowFor  WindowFor             // nil: no model's is known
	Summarizer Summarizer            // asked first, such as a Cascade, whose models get a breaker each; nil for the offline digest alone
	Titles     Titles                // what gives conversations titles after their first answer; "" stands for TitlesOff
	Counter    tokens.Counter        // nil: o200k, as package tree counts
	Logger     *slog.Logger          // nil: none. Records hold counts and ids, never text
	Observe    func(tree.Compaction) // called with every compaction that ran, for metrics; nil for none
	Cost       Cost                  // what models cost, for MaxSummaryCost; nil: no price is known
	Tracing    trace.TracerProvider  // makes a span of each compaction; nil for none. Spans hold counts and ids, never text
}

// A Cost tells what the tokens of calls of a model cost, and whether its price is known.
type Cost func(model string, promptTokens, completionTokens int) (cost float64, known bool)

// A WindowFor tells the window and the reserve of the branches that a model answers, in
// tokens. A window of 0 says that the model isn't known: those of the settings hold.
type WindowFor func(model string) (window, reserved int)

// A Service makes contexts and compacts branches. Several goroutines may use
// it. Between calls it holds its configuration, and which models fail.
type Service struct {
	store      *tree.Store
	settings   Settings
	summarizer Summarizer // nil for none
	digest     digest.Summarizer
	titles     Titles
	count      tokens.Counter
	log        *slog.Logger
	observe    func(tree.Compaction)
	tracer     trace.Tracer
	cost       Cost
	windowFor  WindowFor
	flights    *sync.Map // of flightKey and *flight
}

// New returns a Service over a store. Invalid settings are a fault.Invalid.
func New(store *tree.Store, cfg Config) (_ *Service, err error) {
	defer fault.Wrap(&err, "summarize.New")
	if cfg.Settings == (Settings{}) {
		cfg.Settings = Defaults()
	}
	if c, ok := cfg.Summarizer.(Cascade); ok {
		if cfg.Summarizer = c.withBreakers(); len(c.Models) == 0 {
			cfg.Summarizer = nil
		}
	}
	switch {
	case cfg.Settings.Digest != "":
	case cfg.Summarizer == nil:
		cfg.Settings.Digest = DigestAlways
	default:
		cfg.Settings.Digest = DigestWhenNeeded
	}
	if err := cfg.Settings.Validate(); err != nil {
		return nil, fault.At(err, "settings")
	}
	switch cfg.Titles {
	case "":
		cfg.Titles = TitlesOff
	case TitlesOff, TitlesDigest, TitlesModel:
	default:
		return nil, fmt.Errorf("titles: it must be %s, %s or %s, not %q", TitlesModel, TitlesDigest, TitlesOff, cfg.Titles)
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
	if cfg.WindowFor == nil {
		cfg.WindowFor = func(string) (window, reserved int) { return 0, 0 }
	}
	if cfg.Cost == nil {
		cfg.Cost = func(string, int, int) (float64, bool) { return 0, false }
	}
	s := &Service{
		cost: cfg.Cost, windowFor: cfg.WindowFor,
		store: store, settings: cfg.Settings, log: cfg.Logger, observe: cfg.Observe, tracer: cfg.Tracing.Tracer(tracerName), count: cfg.Counter,
		summarizer: cfg.Summarizer, titles: cfg.Titles, digest: digest.Summarizer{Counter: cfg.Counter},
		flights: new(sync.Map),
	}
	return s, fault.At(s.checkCost(s.settings), "settings")
}

// AsksModels reports whether models write summaries, and not only the offline
// digest.
func (s *Service) AsksModels() bool { return s.summarizer != nil }

// ForTenant returns the same Service for another tenant's conversations.
func (s *Service) ForTenant(tenantID string) *Service {
	return s.Over(s.store.ForTenant(tenantID))
}

// For returns the same Service for what a principal asks.
func (s *Service) For(p access.Principal) *Service { return s.Over(s.store.For(p)) }

// Over returns the same Service over another store of the same conversations: in a
// transaction, or on a replica of the database.
func (s *Service) Over(store *tree.Store) *Service {
	c := *s
	c.store = store
	return &c
}

// A Window overrides the settings about the model that reads the context.
type Window struct {
	MaxContextTokens int   // 0: as the settings say
	ReservedTokens   *int  // nil: as the settings say, and in proportion where MaxContextTokens is less than theirs
	OutputTokens     int   // of an answer that may be longer than the reserve, of half the window at most: clients ask for more than they use
	BesideTokens     int   // reserved in addition, for input of the model beside the context
	Recall           *bool // whether the context says that its folded messages can be searched; nil: as the settings say
}

func (w Window) over(s Settings) (Settings, error) {
	if window := w.MaxContextTokens; window != 0 {
		if window > s.MaxContextTokens {
			usual := s
			s.usual = &usual
		}
		// The reserve that goes with a large window may be all of a small one.
		if window > 0 && window < s.MaxContextTokens {
			s.ReservedTokens = int(float64(s.ReservedTokens) / float64(s.MaxContextTokens) * float64(window))
		}
		s.MaxContextTokens = window
	}
	if w.ReservedTokens != nil {
		s.ReservedTokens = *w.ReservedTokens
	}
	if most := min(w.OutputTokens, (s.MaxContextTokens-w.BesideTokens)/2); most > s.ReservedTokens {
		s.ReservedTokens = most
	}
	if w.Recall != nil {
		s.Recall = *w.Recall
	}
	if s.ReservedTokens >= 0 && w.BesideTokens > 0 {
		s.ReservedTokens = min(s.ReservedTokens+w.BesideTokens, math.MaxInt32)
	}
	switch {
	case s.MaxContextTokens < 1 || s.MaxContextTokens > math.MaxInt32:
		return s, settingFault("max_context_tokens", "It must be 1 or more.")
	case s.ReservedTokens < 0 || s.ReservedTokens >= s.MaxContextTokens:
		return s, settingFault("reserved_tokens", "It must be 0 or more and less than max_context_tokens, which is %d.", s.MaxContextTokens)
	}
	return s, nil
}

// Context returns the messages that a model should read for a head. The cost
// grows with the context: one query, which reads nothing above the cutoff or
// the budget. If the conversation's settings give a larger window than the
// server's, a branch that fills the smaller window takes a second query.
//
// A headID of uuid.Nil is the active head, here and in the other methods. A
// head that is no message of the conversation is a fault.NotFound. An invalid
// window is a fault.Invalid.
func (s *Service) Context(ctx context.Context, conversationID, headID uuid.UUID, w Window) (_ Context, err error) {
	defer fault.Wrap(&err, "summarize.Context(%s, head %s)", conversationID, headID)
	settings, err := w.over(s.settings)
	if err != nil {
		return Context{}, err
	}
	b := Branch{read: settings.Budget().Available, service: s}
	if b.view, err = s.store.View(ctx, conversationID, headID, int64(b.read)); err != nil {
		return Context{}, err
	}
	return b.Context(ctx, w, nil)
}

// SettingsOf returns the settings of a conversation in which no model has answered: the
// server's settings, overridden by the conversation's, overridden by the caller's window. An
// invalid window is a fault.Invalid.
func (s *Service) SettingsOf(c tree.Conversation, w Window) (Settings, error) {
	return s.windowOf(tree.View{ConversationID: c.ID, Settings: c.Settings}, w)
}

// windowOf is SettingsOf for a view. Its window is that of the model that answered
// last, unless the conversation's settings name one.
func (s *Service) windowOf(v tree.View, w Window) (Settings, error) {
	settings := s.settings
	if window, reserved := s.windowFor(v.AnsweredBy); window > 0 && !HasWindow(v.Settings) {
		settings.MaxContextTokens, settings.ReservedTokens = window, reserved
	}
	if !isEmptyObject(v.Settings) {
		// A conversation's settings were checked when they were stored. Where
		// the server's or the model have changed since, reading must still work.
		if merged, err := settings.With(v.Settings); err == nil {
			settings = merged
		} else if merged, err = s.settings.With(v.Settings); err == nil {
			settings = merged
		} else {
			s.log.Warn("a conversation's settings don't stand with the server's, which are used instead", "conversation_id", v.ConversationID, "error", err)
		}
	}
	return w.over(settings)
}

// HasWindow reports whether a conversation's settings name a window.
func HasWindow(settings json.RawMessage) bool {
	var own struct {
		MaxContextTokens *int `json:"max_context_tokens"`
	}
	return !isEmptyObject(settings) && json.Unmarshal(settings, &own) == nil && own.MaxContextTokens != nil
}

func isEmptyObject(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "{}" }

// CheckSettings returns a fault.Invalid if a conversation may not have these
// settings, because they contradict each other or the server's, or ask for a price that
// isn't known.
func (s *Service) CheckSettings(overrides json.RawMessage) error {
	settings, err := s.settings.With(overrides)
	if err == nil {
		err = fault.At(s.checkCost(settings), "settings")
	}
	return err
}
