// Package reply answers branches. It builds the context of a head, calls a
// model with the context, and stores the answer as a child of the head. Asking
// again for the same head makes a sibling.
//
// A reply belongs to the service and not to the caller. It runs to its end when
// its client is gone. Any number of readers can read its events, from the first
// event or from the event at which a reader stopped. A slow reader holds up
// neither the model nor other readers.
//
//	r, _, err := s.Start(ctx, reply.Request{ConversationID: c, HeadID: head})
//	for after := 0; ; {
//		events, err := r.Next(ctx, after) // Started, Deltas, and last an End
//		…
//		after = events[len(events)-1].ID
//	}
//
// A reply ends in one of three ways: completed; stopped, by a caller or because
// the program ends; or failed. The text that came until then is stored in each
// case, and the message's metadata say how the reply ended. Without any text
// nothing is stored.
//
// A reply is a row and a log. The row is stored with the question, and then the
// model is called. The events go into the log in memory, and from there into the
// database twice a second. Any server on the database gives them with the same ids,
// and passes on a request to stop the reply. If the program is killed, Recover
// stores the text in the log as the answer. A reply that was taken over in this way
// stays so: a server that was only stalled stops its model and tells what was told.
//
// A reply with recall gives the model a function that searches the folded
// messages of the branch. The calls and their results become messages between
// the head and the answer. So do those of compact_branch, which has the branch
// compacted after the answer is stored. Any other tool is the client's to run: it sends the
// results and asks again.
//
// The first message gives a conversation a title, where the Contexts of the Config
// say so. After the first answer a better one is looked for, by a Worker of package
// jobs, or here where none queues titles.
//
// The package speaks no HTTP and writes no event's text: package server does.
package reply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// Defaults of a Config.
const (
	DefaultTimeout           = 5 * time.Minute
	DefaultCompactionTimeout = 40 * time.Second // more than one summarizer that hangs takes, and then the digest
	DefaultKeep              = 5 * time.Minute
	DefaultMaxRunning        = 256
	DefaultMaxPerTenant      = 32
	DefaultMaxPreparing      = 12
	DefaultSaveEvery         = 500 * time.Millisecond
	DefaultLease             = 15 * time.Second
	DefaultStoreTimeout      = 15 * time.Second
)

// A Config sets up a Service. Store and Contexts must be set.
type Config struct {
	Store    *tree.Store        // of any tenant; see ForTenant
	Contexts *summarize.Service // over the same store

	Recall  *search.Service   // searches for replies with recall; nil is a service with its own indexes
	Models  []llm.Model       // the first answers where a request names none; none at all: the offline model
	Aliases map[string]string // further names of Models, by which requests may ask for them
	AnyName bool              // the first of Models answers whatever name a request gives; meant for the offline model alone

	// Listed are the models that answer in the place of Models where these change, the
	// default first. It is called for each request. While it gives none, Models answer.
	Listed func() []llm.Model

	Window         func(model string) int  // tells how large a model's window is, 0 for that of the settings; nil: llm.KnownFamilies says it
	WantsReasoning func(model string) bool // tells the models that are given what they thought before they called tools; nil: llm.KnownFamilies says it

	Prefills func(model string) bool // tells the models that go on from an assistant's message that stands last, by vLLM's continue_final_message; nil: none

	Timeout           time.Duration // of a reply from its start to its end, with or without readers; 0 is DefaultTimeout
	CompactionTimeout time.Duration // of the compaction of a branch that doesn't fit, before its reply; 0 is DefaultCompactionTimeout
	Keep              time.Duration // how long the events of a reply whose answer is stored can still be read; 0 is DefaultKeep
	MaxRunning        int           // replies at a time; 0 is DefaultMaxRunning
	MaxPerTenant      int           // and of one tenant's; 0 is DefaultMaxPerTenant
	MaxPreparing      int           // requests whose branches are read at a time, of all tenants; the others wait in turn; 0 is DefaultMaxPreparing

	ServerID     string        // names this server among those on the database, the same at each start; "" is a new name. No two running servers may have the same name
	SaveEvery    time.Duration // how often the new events of a streaming answer are saved; 0 is DefaultSaveEvery
	Lease        time.Duration // after how long without a save another server stores the saved text; 0 is DefaultLease
	Titles       bool          // looks for titles after the answers, where no Worker queues them; Close waits for them
	StoreTimeout time.Duration // how long the database may be away when an answer is there, before it is given up; 0 is DefaultStoreTimeout

	// Stored is called when an answer, or the calls before it, are committed, and
	// before a reader of the reply is told so. nil: none.
	Stored func(ctx context.Context, tenantID string, conversationID uuid.UUID)

	Logger  *slog.Logger         // nil: none. Records hold ids and counts, never text
	Tracing trace.TracerProvider // makes a span of each reply, below that of its request; nil for none. Spans hold ids and counts, never text
}

// A Service runs replies. It is safe for use by several goroutines.
type Service struct {
	*shared
	store    *tree.Store
	contexts *summarize.Service
}

// shared is what the services of all tenants have in common.
type shared struct {
	cfg        Config
	preparing  chan struct{} // has one of each request that is prepared: side by side, all of many would end as late as the last
	hub        *hub
	background *background

	closing context.Context // ends with Close
	close   context.CancelFunc
	log     *slog.Logger
	tracer  trace.Tracer
}

// New returns a Service.
func New(cfg Config) (*Service, error) {
	if cfg.Store == nil || cfg.Contexts == nil {
		return nil, errors.New("reply.New: Store and Contexts must be set")
	}
	if len(cfg.Models) == 0 && cfg.Listed == nil {
		cfg.Models = []llm.Model{llm.Offline(0)}
	}
	seen := map[string]bool{}
	for _, m := range cfg.Models {
		if seen[m.Name()] {
			return nil, fmt.Errorf("reply.New: two models have the name %q, by which requests choose one", m.Name())
		}
		seen[m.Name()] = true
	}
	for alias, name := range cfg.Aliases {
		switch {
		case seen[alias]:
			return nil, fmt.Errorf("reply.New: %q is the name of a model, and can't be an alias", alias)
		case alias == "" || !seen[name] && cfg.Listed == nil:
			return nil, fmt.Errorf("reply.New: the alias %q stands for %q, which is no model that answers", alias, name)
		}
	}
	if cfg.Recall == nil {
		cfg.Recall = search.New(0)
	}
	known := llm.KnownFamilies()
	if cfg.Window == nil {
		cfg.Window = func(model string) int {
			family, _ := known.Find(model)
			return family.Window
		}
	}
	if cfg.WantsReasoning == nil {
		cfg.WantsReasoning = func(model string) bool {
			family, _ := known.Find(model)
			return family.WantsReasoning
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Tracing == nil {
		cfg.Tracing = noop.NewTracerProvider()
	}
	setDefault(&cfg.Timeout, DefaultTimeout)
	setDefault(&cfg.CompactionTimeout, DefaultCompactionTimeout)
	setDefault(&cfg.Keep, DefaultKeep)
	setDefault(&cfg.MaxRunning, DefaultMaxRunning)
	setDefault(&cfg.MaxPerTenant, DefaultMaxPerTenant)
	setDefault(&cfg.MaxPreparing, DefaultMaxPreparing)
	setDefault(&cfg.SaveEvery, DefaultSaveEvery)
	setDefault(&cfg.Lease, DefaultLease)
	setDefault(&cfg.StoreTimeout, DefaultStoreTimeout)
	setDefault(&cfg.ServerID, newServerID())
	closing, closeAll := context.WithCancel(context.Background())
	return &Service{
		shared: &shared{
			closing: closing, close: closeAll, background: newBackground(),
			cfg: cfg, log: cfg.Logger, tracer: cfg.Tracing.Tracer("github.com/coppice-chat/coppice/reply"),
			preparing: make(chan struct{}, cfg.MaxPreparing),
			hub:       newHub(cfg.MaxRunning, cfg.MaxPerTenant),
		},
		store: cfg.Store, contexts: cfg.Contexts,
	}, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// ForTenant returns the same Service for another tenant's conversations.
func (s *Service) ForTenant(tenantID string) *Service {
	return &Service{shared: s.shared, store: s.store.ForTenant(tenantID), contexts: s.contexts.ForTenant(tenantID)}
}

// For returns the same Service for what a principal asks.
func (s *Service) For(p access.Principal) *Service {
	return &Service{shared: s.shared, store: s.store.For(p), contexts: s.contexts.For(p)}
}

// Names returns the names that a request may ask for: those of Models, and then the
// aliases.
func (s *Service) Names() []string {
	return slices.Concat(s.Models(), slices.Sorted(maps.Keys(s.cfg.Aliases)))
}

// AnyName reports whether the first of Models answers whatever name a request gives.
func (s *Service) AnyName() bool {
	return s.cfg.AnyName && (s.cfg.Listed == nil || len(s.cfg.Listed()) == 0)
}

// models are those that answer now.
func (s *Service) models() []llm.Model {
	if s.cfg.Listed != nil {
		if listed := s.cfg.Listed(); len(listed) > 0 {
			return listed
		}
	}
	return s.cfg.Models
}

// Models returns the names that a request may choose from, the default first.
func (s *Service) Models() (names []string) {
	for _, m := range s.models() {
		names = append(names, m.Name())
	}
	return names
}

// Find returns a reply by the id of its answer. The reply runs, on any server, or
// has ended lately, or it is made of the stored answer and has only its End. Any
// other id is a fault.NotFound.
//
// The events of a reply that another server runs come within a second, with the ids
// that they have there.
func (s *Service) Find(ctx context.Context, conversationID, messageID uuid.UUID) (_ *Reply, err error) {
	defer fault.Wrap(&err, "reply.Find(%s, %s)", conversationID, messageID)
	if r, err := s.running(ctx, conversationID, messageID); r != nil || err != nil {
		return r, err
	}
	r, err := s.known(ctx, conversationID, messageID)
	if r == nil && (err == nil || err == errTaken) {
		if _, err = s.store.Conversation(ctx, conversationID); err == nil {
			err = errReplyNotFound
		}
	}
	return r, err
}

// running returns a reply that this server runs, nil for none. It is a fault.NotFound if
// the service's principal may not read the conversation.
func (s *Service) running(ctx context.Context, conversationID, messageID uuid.UUID) (*Reply, error) {
	r, _ := s.hub.find(s.key(conversationID, messageID))
	if r == nil {
		return nil, nil
	}
	if err := s.store.CheckReader(ctx, conversationID); err != nil {
		return nil, err
	}
	return r, nil
}

// Stop ends a reply on whichever server it runs, waits until the text that came is
// stored, and returns the End. A reply that has ended already keeps its End. Stop
// finds replies as Find does.
func (s *Service) Stop(ctx context.Context, conversationID, messageID uuid.UUID) (_ End, err error) {
	defer fault.Wrap(&err, "reply.Stop(%s, %s)", conversationID, messageID)
	r, err := s.Find(ctx, conversationID, messageID)
	if err != nil {
		return End{}, err
	}
	switch {
	case r.events != nil:
		r.cancel(errStopped)
	case r.found == nil:
		if _, err := s.store.Replies().Stop(ctx, conversationID, messageID); err != nil {
			return End{}, err
		}
	}
	return r.Wait(ctx)
}

// Running returns the replies that run in a conversation, on any server.
func (s *Service) Running(ctx context.Context, conversationID uuid.UUID) (_ []tree.RunningReply, err error) {
	defer fault.Wrap(&err, "reply.Running(%s)", conversationID)
	return s.store.Replies().Of(ctx, conversationID)
}

// Close refuses new replies, lets the running ones go on until ctx ends, and
// then stops them. The same goes for what is done after replies. It returns when
// all replies are stored, and an error if some aren't within a further short time.
func (s *Service) Close(ctx context.Context) error {
	ended := s.hub.close()
	s.close()
	select {
	case <-ended:
		s.background.end(ctx)
		return nil
	case <-ctx.Done():
	}
	s.hub.cancelAll(errClosing)
	grace := s.cfg.StoreTimeout + 5*time.Second
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
		s.background.end(ctx)
		return nil
	case <-timer.C:
		return fmt.Errorf("reply.Close: %d replies didn't end within %s of being stopped; what they said may not be stored", s.Stats().Running, grace)
	}
}

// Stats are counts since the Service was made.
type Stats struct {
	Running                    int
	Completed, Stopped, Failed uint64
}

// Stats returns the counts of all tenants' replies.
func (s *Service) Stats() Stats { return s.hub.stats() }

func (s *Service) key(conversationID, messageID uuid.UUID) key {
	return key{s.store.TenantID(), conversationID, messageID}
}
