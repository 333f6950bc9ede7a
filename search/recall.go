package search

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/search/embed"
	"github.com/coppice-chat/coppice/tree"
)

// A Scope says which messages to search.
type Scope string

const (
	ScopeFolded       Scope = "folded"       // messages of the branch that its applicable summary replaces
	ScopeBranch       Scope = "branch"       // all messages of the branch
	ScopeConversation Scope = "conversation" // all messages of the conversation
	ScopeTenant       Scope = "tenant"       // the tenant's conversations that have most of the question's words; see RecallTenant
)

// whole tells whether a scope has messages of other branches.
func (s Scope) whole() bool { return s == ScopeConversation || s == ScopeTenant }

// Limits of a question.
const (
	MaxQueryBytes    = 64 << 10
	DefaultLimit     = 10
	MaxLimit         = 50
	DefaultMaxTokens = 4000
	MaxMaxTokens     = 100_000
)

// A Question asks for messages in plain words.
type Question struct {
	Query     string // plain words, in any language; of more than 64 different ones the rarest count
	Scope     Scope  // "" is ScopeFolded
	Limit     int    // of hits; 0 is DefaultLimit
	MaxTokens int    // of all messages in the answer; 0 is DefaultMaxTokens

	bytes   int            // of all messages in the answer; checked makes it tree.MaxPageBytes
	meaning func() meaning // nil where no model is configured
	picked  []picked       // the hits, where they were chosen before; nil where not
	reads   *allowance
}

// An Answer has the messages that were found, the best first.
type Answer struct {
	ConversationID, HeadID uuid.UUID // of the branch that was asked about; uuid.Nil where a tenant was
	Scope                  Scope     `json:"scope"`
	Hits                   []Hit     `json:"data"`
	Searched               int       `json:"searched"`   // messages in the scope, as far as they were read
	Incomplete             bool      `json:"incomplete"` // older messages of the scope were not read yet: the next question reads on
	Omitted                int       `json:"omitted"`    // hits for which MaxTokens, or a page, had no room
	Ranking                Ranking   `json:"ranking"`    // "" where no model is configured
}

// A Ranking says how hits were chosen.
type Ranking string

const (
	RankingWords      Ranking = "words"      // by their words, and those of the messages around them
	RankingEmbeddings Ranking = "embeddings" // by their words and by their vectors: the ranks of both are fused
)

// A Hit is a message that answers a question. Before and After are the messages
// around it on the branch, oldest first, as far as there was room. No message
// occurs twice in an answer.
type Hit struct {
	Message  tree.Message   `json:"message"`   // its Body is nil where there was no room for it
	Excerpt  string         `json:"excerpt"`   // the part of its text where most of the question's words stand
	Score    float64        `json:"score"`     // comparable within one answer only
	OnBranch bool           `json:"on_branch"` // it lies on the branch that was asked about; in scope tenant, on the active one of its conversation
	Folded   bool           `json:"folded"`    // the applicable summary of that branch replaces it
	Before   []tree.Message `json:"before"`
	After    []tree.Message `json:"after"`
}

// A Service answers questions about conversations. Several goroutines may use
// it.
type Service struct {
	cache *cache
	embed *embed.Service // nil for none
	log   *slog.Logger

	messages atomic.Int64  // that Follow indexed
	timeout  time.Duration // of a search by words
	mostRead int           // bytes of texts that a question reads

	mu     sync.Mutex
	behind map[string]unfollowed // by tenant
}

// An Option sets up a Service.
type Option func(*Service)

// WithEmbeddings ranks by vectors, too. A nil service is none.
func WithEmbeddings(e *embed.Service) Option { return func(s *Service) { s.embed = e } }

// WithLogger has the log tell how far the index of words is.
func WithLogger(log *slog.Logger) Option { return func(s *Service) { s.log = log } }

// WithTimeout has a search by words take another time at most than Timeout.
func WithTimeout(d time.Duration) Option { return func(s *Service) { s.timeout = d } }

// DefaultMaxBytes is how much memory the indexes of a Service take by default.
// That is enough for about 400,000 messages of 300 words.
const DefaultMaxBytes = 256 << 20

// New returns a Service whose indexes take about maxBytes of memory together; 0
// is DefaultMaxBytes. A single index that takes more is dropped after each
// answer.
func New(maxBytes int64, opts ...Option) *Service {
	if maxBytes == 0 {
		maxBytes = DefaultMaxBytes
	}
	s := &Service{cache: newCache(maxBytes), log: slog.New(slog.DiscardHandler), behind: map[string]unfollowed{}, timeout: Timeout, mostRead: mostRead}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Stats are metrics of a Service.
type Stats struct {
	Conversations int   // whose indexes are in memory
	Bytes         int64 // that they take, about
}

// Stats returns the present metrics.
func (s *Service) Stats() Stats { return s.cache.stats() }

// Recall returns the messages that answer a question on the branch that ends in
// headID, or in the active head where headID is uuid.Nil. All of them are on
// that branch, or in the conversation or the tenant if that is the scope. A
// message that was pruned before the call is not among them.
//
// The first question about a conversation reads the branch, at 6,000 to 60,000
// messages a second, depending on their length. A later question reads the
// messages that were appended since. A question reads 16 MiB of texts at most, the
// newest first. If that isn't all, the answer is of what was read, and says that it is
// incomplete; the next question reads on.
func (s *Service) Recall(ctx context.Context, store *tree.Store, conversationID, headID uuid.UUID, q Question) (answer Answer, err error) {
	defer fault.Wrap(&err, "search.Recall(%s, head %s)", conversationID, headID)
	if q, err = s.checked(access.With(ctx, store.TenantID()), q); err != nil {
		return Answer{}, err
	}
	if q.Scope == ScopeTenant {
		state, err := store.Index().BranchState(ctx, conversationID, headID)
		if err != nil {
			return Answer{}, err
		}
		answer, err = s.tenant(ctx, store, q)
		answer.ConversationID, answer.HeadID = conversationID, state.HeadID
		return answer, err
	}
	err = s.ask(store, conversationID, func(c *conversation) (err error) {
		answer, err = c.answer(ctx, store, headID, q)
		return err
	})
	return answer, err
}

// attempts is how often a question is asked again because something was pruned
// while it was answered.
const attempts = 3

// ask calls f with what is known of a conversation, and again where something was
// pruned meanwhile.
func (s *Service) ask(store *tree.Store, conversationID uuid.UUID, f func(*conversation) error) error {
	c := s.cache.get(key{store.TenantID(), conversationID})
	defer s.cache.used(c)
	for range attempts {
		if err := f(c); !errors.Is(err, errChanged) {
			return err
		}
	}
	return fault.New(fault.Conflict, "changed_meanwhile", "",
		"The conversation was pruned again and again while the question was answered. Ask again.")
}

// errChanged says that something was pruned since the branch was looked up.
var errChanged = errors.New("the branch changed")

func (s *Service) checked(ctx context.Context, q Question) (Question, error) {
	switch {
	case len(q.Query) > MaxQueryBytes:
		return q, fault.New(fault.TooLarge, "query_too_large", "query", "The question has %d bytes, and %d is the most. Ask in fewer words.", len(q.Query), MaxQueryBytes)
	case len(wordsOf(q.Query)) == 0:
		return q, fault.New(fault.Invalid, "empty_query", "query", "Say in words what to look for.")
	case q.Limit < 0 || q.Limit > MaxLimit:
		return q, fault.New(fault.Invalid, "invalid_limit", "limit", "Ask for 1 to %d messages.", MaxLimit)
	case q.MaxTokens < 0 || q.MaxTokens > MaxMaxTokens:
		return q, fault.New(fault.Invalid, "invalid_parameter", "max_tokens", "Ask for 1 to %d tokens.", MaxMaxTokens)
	}
	if q.Scope == "" {
		q.Scope = ScopeFolded
	}
	if !slices.Contains([]Scope{ScopeFolded, ScopeBranch, ScopeConversation, ScopeTenant}, q.Scope) {
		return q, fault.New(fault.Invalid, "invalid_parameter", "scope", "The scope is %s, %s, %s or %s.", ScopeFolded, ScopeBranch, ScopeConversation, ScopeTenant)
	}
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	if q.MaxTokens == 0 {
		q.MaxTokens = DefaultMaxTokens
	}
	q.bytes = tree.MaxPageBytes
	q.meaning, q.reads = s.meaningOf(ctx, q.Query), &allowance{bytes: s.mostRead}
	return q, nil
}
