package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// CacheConfig says how long a conversation [Cache] has. The zero value stands
// for 2,000 turns.
type CacheConfig struct {
	Turns    int             // of the user's
	Seed     uint64          // of what is said
	Progress func(int) error // called after each turn with its number; nil for none. Its error ends the run
}

// A CacheReport says how much of a conversation's contexts its model's
// provider has seen before.
type CacheReport struct {
	Seed          uint64      `json:"seed"`
	Turns         int         `json:"turns"`
	Messages      int         `json:"messages"`
	TotalTokens   int         `json:"total_tokens"` // of the whole conversation
	Compactions   int         `json:"compactions"`
	Model         string      `json:"model"` // that wrote the last summary
	TriggerTokens int         `json:"trigger_tokens"`
	Ours          CachedShare `json:"ours"`
	Sliding       CachedShare `json:"sliding_window"` // the newest messages that fit into trigger_tokens, after the system message
}

// A CachedShare counts the tokens of all contexts of a conversation, one for
// each turn.
type CachedShare struct {
	Tokens int `json:"tokens"`
	Cached int `json:"cached"` // of them, in messages that begin the context of the turn before, byte for byte and in the same order
}

// Percent is the share of tokens that were cached.
func (s CachedShare) Percent() float64 {
	if s.Tokens == 0 {
		return 0
	}
	return 100 * float64(s.Cached) / float64(s.Tokens)
}

// Cache holds a made-up conversation on the store, turn by turn: the user's
// message, the context that the model gets, its answer, and a compaction where
// the context is over its trigger. It compares each context with the one before.
//
// The conversation stays in the store; over a transaction the caller can undo
// it. The service must work on the same store, with automatic compaction, and
// the store must have no append hook that compacts. Postgres should know how
// large its tables are (analyze), or it may plan for an empty one and read too
// much.
func Cache(ctx context.Context, store *tree.Store, service *summarize.Service, cfg CacheConfig) (_ CacheReport, err error) {
	if cfg.Turns == 0 {
		cfg.Turns = 2000
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("bench.Cache(%d turns): %w", cfg.Turns, err)
		}
	}()
	c := &talk{ctx: ctx, store: store, service: service, rand: rand.New(rand.NewPCG(cfg.Seed, 0)), costs: map[string]int{}}
	made, _, err := store.CreateConversation(ctx, tree.NewConversation{Title: "coppice bench cache"})
	if err != nil {
		return CacheReport{}, err
	}
	c.id = made.ID
	if err := c.say(tree.RoleSystem, systemText); err != nil {
		return CacheReport{}, err
	}
	for turn := range cfg.Turns {
		if err := c.turn(); err != nil {
			return CacheReport{}, err
		}
		if cfg.Progress == nil {
			continue
		}
		if err := cfg.Progress(turn + 1); err != nil {
			return CacheReport{}, err
		}
	}
	r := c.report
	r.Seed, r.Turns, r.Messages = cfg.Seed, cfg.Turns, len(c.said)
	for _, m := range c.said {
		r.TotalTokens += m.tokens
	}
	return r, nil
}

// A talk is the conversation that Cache holds.
type talk struct {
	ctx     context.Context
	store   *tree.Store
	service *summarize.Service
	rand    *rand.Rand
	id      uuid.UUID
	head    uuid.UUID

	said   []piece        // every message
	costs  map[string]int // tokens, by body
	ours   []piece        // the context before
	window []piece        // what the sliding window held before
	report CacheReport
}

// A piece is a message of a context.
type piece struct {
	body   string
	tokens int
}

func (c *talk) turn() error {
	if err := c.say(tree.RoleUser, c.words(userTokens)); err != nil {
		return err
	}
	got, err := c.service.Context(c.ctx, c.id, c.head, summarize.Window{})
	if err != nil {
		return err
	}
	c.report.TriggerTokens = got.Usage.TriggerTokens
	ours := make([]piece, len(got.Messages))
	for i, body := range got.Messages {
		cost, ok := c.costs[string(body)]
		if !ok { // the one message that nobody said
			cost = got.Summary.Tokens
		}
		ours[i] = piece{string(body), cost}
	}
	c.report.Ours.add(c.ours, ours)
	c.ours = ours

	window := c.slide(got.Usage.TriggerTokens)
	c.report.Sliding.add(c.window, window)
	c.window = window

	if err := c.say(tree.RoleAssistant, c.words(assistantTokens)); err != nil {
		return err
	}
	if got.Usage.ContextTokens+c.said[len(c.said)-1].tokens <= got.Usage.TriggerTokens {
		return nil
	}
	k, err := c.service.Compact(c.ctx, c.id, c.head, summarize.TriggerAppend, nil)
	if err == nil && k.Outcome == tree.OutcomeSaved {
		c.report.Compactions++
		c.report.Model = k.Model
	}
	return err
}

func (c *talk) say(role tree.Role, text string) error {
	body, err := json.Marshal(struct {
		Role    tree.Role `json:"role"`
		Content string    `json:"content"`
	}{role, text})
	if err != nil {
		return err
	}
	m, _, err := c.store.Append(c.ctx, c.id, c.head, tree.NewMessage{Body: body})
	if err != nil {
		return err
	}
	c.head = m.ID
	c.said = append(c.said, piece{string(body), m.Tokens})
	c.costs[string(body)] = m.Tokens
	return nil
}

// slide is what a window of so many tokens shows: the system message and the
// newest messages that fit.
func (c *talk) slide(size int) []piece {
	start := len(c.said)
	for sum := c.said[0].tokens; start > 1 && sum+c.said[start-1].tokens <= size; start-- {
		sum += c.said[start-1].tokens
	}
	return slices.Concat(c.said[:1], c.said[start:])
}

// add counts a context against the one before.
func (s *CachedShare) add(before, now []piece) {
	same := true
	for i, p := range now {
		s.Tokens += p.tokens
		same = same && i < len(before) && before[i] == p
		if same {
			s.Cached += p.tokens
		}
	}
}
