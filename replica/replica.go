package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// Header is the HTTP header that an answer of a write, and a later read, have the
// token in.
const Header = "Coppice-Position"

// DefaultMaxLag is how far behind a replica may be.
const DefaultMaxLag = 10 * time.Second

const (
	maxMaxLag    = 5 * time.Minute
	checkEvery   = time.Second
	checkTimeout = 5 * time.Second
	askTimeout   = 2 * time.Second // of one question about a position
)

// Config says how to use a replica.
type Config struct {
	MaxLag  time.Duration // a replica that is further behind isn't read from; 0 is DefaultMaxLag
	Options []tree.Option // of the store over the replica
	Logger  *slog.Logger  // nil discards
}

// A Replica is a copy of the database that reads may use. It is safe for use by
// several goroutines.
type Replica struct {
	cfg     Config
	primary *pgxpool.Pool
	at      db.Config // the replica
	tokens  tokens
	written *written
	lag     lag
	counts  [reasons]atomic.Int64

	checking sync.Mutex
	pool     *pgxpool.Pool // nil before the replica answered; of checking

	mu    sync.Mutex
	state State
	live  *live // nil while the replica is away

	stop func()
}

// live is what reads need of a replica until it is away.
type live struct {
	pool  *pgxpool.Pool
	store *tree.Store
	ctx   context.Context // ends when the replica is away
	end   context.CancelFunc
}

// State says whether the replica is read from.
type State struct {
	Up     bool
	Reason string        // why not; "" where it is
	Lag    time.Duration // how old the state is that it shows, at most, as of the last check
}

// A Reason says where a read went, and why.
type Reason int

// Reasons.
const (
	Served Reason = iota // by the replica
	Behind               // by the primary: the replica hasn't replayed what the client wrote
	Away                 // by the primary: the replica is away, or too far behind
	Failed               // by the primary: the replica could not answer, or not find what was asked for
	reasons
)

// New connects to a replica of a primary, and then looks once a second whether it
// can be read from. A replica that doesn't answer is no error: reads go to the
// primary until it does.
func New(ctx context.Context, primary *pgxpool.Pool, at db.Config, cfg Config) (_ *Replica, err error) {
	defer fault.Wrap(&err, "replica.New")
	if _, err := pgxpool.ParseConfig(at.URL); err != nil {
		return nil, fmt.Errorf("the URL of the read replica can't be read: %w", err)
	}
	if cfg.MaxLag == 0 {
		cfg.MaxLag = DefaultMaxLag
	}
	if cfg.MaxLag < time.Second || cfg.MaxLag > maxMaxLag {
		return nil, fmt.Errorf("a read replica may be 1s to %v behind, not %v", maxMaxLag, cfg.MaxLag)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Replica{cfg: cfg, primary: primary, at: at, written: newWritten(), state: State{Reason: "it wasn't looked at yet"}}
	r.at.Admit = r.admit
	key, err := tree.New(primary).Admin().DeriveKey(ctx, "positions")
	if err != nil {
		return nil, err
	}
	if r.tokens, err = newTokens(key); err != nil {
		return nil, err
	}
	r.check(ctx)
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { r.watch(watching) })
	r.stop = func() { cancel(); done.Wait() }
	return r, nil
}

// Close ends the reads that are under way, and closes the connections.
func (r *Replica) Close() {
	r.stop()
	r.mu.Lock()
	if r.live != nil {
		r.live.end()
		r.live = nil
	}
	r.mu.Unlock()
	if r.pool != nil {
		r.pool.Close()
	}
}

// State returns the present state.
func (r *Replica) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Word says the state in one word: used, or away. Without a replica it is "".
func (r *Replica) Word() string {
	switch {
	case r == nil:
		return ""
	case r.State().Up:
		return "used"
	}
	return "away"
}

// Count returns how many reads went where for a reason.
func (r *Replica) Count(why Reason) int64 { return r.counts[why].Load() }

// A Reading is a read from the replica.
type Reading struct {
	Store   *tree.Store
	Context context.Context // ends when the replica is away, too

	of   *Replica
	stop func()
}

// Read says where a request of a tenant reads: from the replica, or from the
// primary, where the Reading is nil. The request names a conversation, or reads
// the tenant's lists where that is uuid.Nil. sent are the tokens that its client
// sent, with commas between; one that Wrote didn't make for the tenant is a
// fault.Invalid.
func (r *Replica) Read(ctx context.Context, tenant string, conversation uuid.UUID, sent string) (*Reading, error) {
	wanted, err := r.tokens.furthest(tenant, sent)
	if err != nil {
		return nil, err
	}
	wanted = max(wanted, r.written.wants(tenant, conversation))
	r.mu.Lock()
	live := r.live
	r.mu.Unlock()
	if live == nil {
		r.counts[Away].Add(1)
		return nil, nil
	}
	if wanted > r.written.reached() && !r.replays(ctx, live.pool, wanted) {
		r.counts[Behind].Add(1)
		return nil, nil
	}
	reading := &Reading{Store: live.store.ForTenant(tenant), of: r}
	var cancel context.CancelFunc
	reading.Context, cancel = context.WithCancel(ctx)
	unlink := context.AfterFunc(live.ctx, cancel)
	reading.stop = func() { unlink(); cancel() }
	return reading, nil
}

// replays asks whether the replica has replayed up to a position meanwhile.
func (r *Replica) replays(ctx context.Context, pool *pgxpool.Pool, wanted db.Position) bool {
	if wanted == nowhere {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	p, _, err := db.ReplayedUpTo(ctx, pool)
	if err != nil {
		return false
	}
	r.written.advance(p)
	return p >= wanted
}

// Close ends a Reading.
func (g *Reading) Close() { g.stop() }

// Again notes what came of a Reading, and reports whether the primary is to be
// asked again. It isn't for an answer, for input that is refused everywhere, and
// for a search that takes too long.
func (g *Reading) Again(err error) bool {
	if err == nil || errors.Is(err, fault.Invalid) || errors.Is(err, fault.TooLarge) || errors.Is(err, fault.Timeout) {
		g.of.counts[Served].Add(1)
		return false
	}
	g.of.counts[Failed].Add(1)
	return true
}

// Wrote is called after a write of a tenant in a conversation, or anywhere where
// that is uuid.Nil. It returns the token for the client. Where the primary doesn't
// answer there is none, and the next reads go to the primary.
func (r *Replica) Wrote(ctx context.Context, tenant string, conversation uuid.UUID) (token string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	p, err := db.WrittenUpTo(ctx, r.primary)
	if err != nil {
		r.written.noteUnknown()
		return ""
	}
	r.written.note(tenant, conversation, p)
	return r.tokens.encrypt(tenant, p)
}

// Newest returns a token for a tenant that is as far as that of any write that Wrote
// was called for.
func (r *Replica) Newest(tenant string) (token string) {
	return r.tokens.encrypt(tenant, r.written.furthest())
}

// errBack refuses a connection to a replica that shows less than it did.
var errBack = errors.New("the replica went back: it crashed, or the URL leads to several replicas, which can't be told apart")

// admit checks that a new connection leads to as much as the ones before.
func (r *Replica) admit(ctx context.Context, conn *pgx.Conn) error {
	before := r.written.reached()
	p, _, err := db.ReplayedUpTo(ctx, conn)
	if err == nil && p < before {
		err = errBack
	}
	return err
}
