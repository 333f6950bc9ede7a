// Package searches measures searches, and what the search index takes, in a
// database of any number of made-up messages.
package searches

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// Config says what is measured.
type Config struct {
	Messages    int    // in all
	Tenants     int    // that have them by turns
	Rounds      int    // searches of each kind
	Grown       bool   // load with the indexes in place, as appends do
	BuildMemory string // maintenance_work_mem for indexes that are built afterwards
}

// A Report says what came of it.
type Report struct {
	Messages, Tenants int
	Load, Build       time.Duration
	Timings           []Timing
	Sizes             Sizes
}

// A Timing is of one kind of call.
type Timing struct {
	What        string
	Median, P99 time.Duration
	Calls       int
	TimedOut    int // ended by the limit of a search
	Found       int // calls that found something
}

// Sizes are bytes of the table of messages.
type Sizes struct {
	Bodies, Table, Search, Recent, Other int64
}

// Of returns bytes for each message.
func (r Report) Of(bytes int64) float64 { return float64(bytes) / float64(max(1, r.Messages)) }

// Ratio is what all of it takes, as a multiple of the bodies.
func (s Sizes) Ratio() float64 {
	return float64(s.Table+s.Search+s.Recent+s.Other) / float64(max(1, s.Bodies))
}

// Run loads an empty database and measures it. It needs a superuser, because
// foreign keys aren't checked while it loads.
func Run(ctx context.Context, pool *pgxpool.Pool, cfg Config, remark func(format string, args ...any)) (Report, error) {
	if cfg.Rounds < 1 {
		return Report{}, errors.New("give at least one round")
	}
	l, err := load(ctx, pool, cfg, remark)
	if err != nil {
		return Report{}, err
	}
	r := Report{Messages: cfg.Messages, Tenants: cfg.Tenants, Load: l.loading, Build: l.building}
	if r.Sizes, err = sizes(ctx, pool, l.bodies); err != nil {
		return Report{}, err
	}
	m := measurer{ctx: ctx, pool: pool, store: tree.New(pool), cfg: cfg, words: l.words, random: rand.New(rand.NewPCG(7, 8))}
	for _, kind := range kinds {
		for _, call := range calls {
			t, err := m.time(call.name+", "+kind.name, cfg.Rounds, func() (bool, error) { return call.run(&m, kind.draw(&m)) })
			if err != nil {
				return Report{}, err
			}
			remark("%s: %s", t.What, t.Median)
			r.Timings = append(r.Timings, t)
		}
	}
	t, err := m.time("append", 10*cfg.Rounds, m.appendOne)
	r.Timings = append(r.Timings, t)
	return r, err
}

// Load stores made-up messages, as Run does, and measures nothing.
func Load(ctx context.Context, pool *pgxpool.Pool, cfg Config, remark func(format string, args ...any)) error {
	_, err := load(ctx, pool, cfg, remark)
	return err
}

type measurer struct {
	ctx    context.Context
	pool   *pgxpool.Pool
	store  *tree.Store
	cfg    Config
	words  []string
	random *rand.Rand
	spoken int
}

// kinds are words by how many messages have them. Ranks count from the most
// frequent word.
var kinds = []struct {
	name string
	draw func(*measurer) string
}{
	{"absent", func(m *measurer) string { m.spoken++; return fmt.Sprintf("\"unheardof%d\"", m.spoken) }},
	{"rare", func(m *measurer) string { return m.rank(20_000, 40_000) }},
	{"medium", func(m *measurer) string { return m.rank(1_000, 2_000) }},
	{"common", func(m *measurer) string { return m.rank(2, 30) }},
	{"beginning of a rare one", func(m *measurer) string { word := m.rank(20_000, 40_000); return word[1 : len(word)-3] }},
}

// rank draws a word, in quotes, as it is to be found whole.
func (m *measurer) rank(from, to int) string {
	return `"` + m.words[from+m.random.IntN(to-from)] + `"`
}

var calls = []struct {
	name string
	run  func(*measurer, string) (bool, error)
}{
	{"tenant, newest", func(m *measurer, query string) (bool, error) {
		p, err := m.tenant().Search(m.ctx, query, uuid.Nil, tree.Paging{})
		return len(p.Data) > 0, err
	}},
	{"tenant, relevance", func(m *measurer, query string) (bool, error) {
		p, err := m.tenant().SearchRanked(m.ctx, query, uuid.Nil, tree.Paging{})
		return len(p.Data) > 0, err
	}},
	{"conversation, newest", func(m *measurer, query string) (bool, error) {
		s, id := m.conversation()
		p, err := s.Search(m.ctx, query, id, tree.Paging{})
		return len(p.Data) > 0, err
	}},
	{"list of conversations", func(m *measurer, query string) (bool, error) {
		p, err := m.tenant().Conversations(m.ctx, tree.ConversationFilter{Query: query}, tree.Paging{})
		return len(p.Data) > 0, err
	}},
}

func (m *measurer) tenant() *tree.Store {
	return m.store.ForTenant(tenantID(m.random.IntN(m.cfg.Tenants)))
}

// conversation draws one, and its tenant's store.
func (m *measurer) conversation() (*tree.Store, uuid.UUID) {
	n := m.random.IntN(m.cfg.Messages / PerConversation)
	return m.store.ForTenant(tenantID(n % m.cfg.Tenants)), conversationID(n)
}

func (m *measurer) appendOne() (bool, error) {
	s, id := m.conversation()
	c, err := s.Conversation(m.ctx, id)
	if err != nil {
		return false, err
	}
	_, _, err = s.Append(m.ctx, id, c.HeadID, tree.NewMessage{Body: body(m.words, m.random)})
	return true, err
}

// time calls f so many times, once more to begin with.
func (m *measurer) time(what string, rounds int, f func() (bool, error)) (Timing, error) {
	t := Timing{What: what, Calls: rounds}
	var took []time.Duration
	for i := range rounds + 1 {
		start := time.Now()
		found, err := f()
		if i == 0 {
			continue
		}
		took = append(took, time.Since(start))
		switch {
		case errors.Is(err, fault.Timeout):
			t.TimedOut++
		case err != nil:
			return t, fmt.Errorf("%s: %w", what, err)
		case found:
			t.Found++
		}
	}
	slices.Sort(took)
	t.Median, t.P99 = took[len(took)/2], took[len(took)*99/100]
	return t, nil
}
