// Package watch tells what changes in conversations while it happens, whichever
// server of the database changes it.
//
// What changed stands in the database: package tree stores a row with each change,
// in the same transaction (tree.Change). A Hub reads those rows and passes them on
// to its Watches. Nothing else is a source, so a notification that gets lost, a
// server that is killed, and a connection that breaks lose nothing.
//
// A Hub learns that there is something to read in three ways:
//
//   - its own server's stores call Changed after a commit;
//   - other servers send signals: the tenant's hash and the conversation's id, no
//     text. They are sent after the commit and gathered for some milliseconds,
//     because a NOTIFY within a transaction makes the commits of all of them wait
//     for each other;
//   - one query looks for conversations that changed, for all Watches together:
//     every few seconds in case a signal got lost, and twice a second where there
//     are no signals, as with a pooler.
//
// A Follower works on what changed, in the background, and keeps its place in each
// conversation. It needs no signals: see Hub.Follow.
//
// The feed is no queue and no audit log: rows are deleted after an hour.
package watch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

const (
	// DefaultPoll is the time between two looks at what changed where there are
	// no signals.
	DefaultPoll = 500 * time.Millisecond

	slowPoll   = 5 * time.Second       // where there are signals
	sendEvery  = 20 * time.Millisecond // signals
	retryEvery = 5 * time.Second       // to listen, after the connection broke
	forgetting = 10 * time.Minute      // between two times that old changes are deleted
	overlap    = 10 * time.Second      // a commit may come so much later than the time of its change, and clocks may differ
	maxQueue   = 1000                  // changes that a Watch may be behind
	atOnce     = 1000                  // changes read at a time
	mostTold   = 10_000                // conversations remembered without a look at their age
	maxSignal  = 7500                  // bytes
)

// Signals go between the servers on one database. *db.Signals are some.
type Signals interface {
	Send(ctx context.Context, text string) error
	Listen(ctx context.Context, ready func(), heard func(text string)) error
}

// Config says what a Hub reads.
type Config struct {
	Store   *tree.Store   // of any tenant
	Signals Signals       // nil where there are none
	Poll    time.Duration // without signals; 0 is DefaultPoll
	Logger  *slog.Logger  // nil discards

	// ServerID names the server among those of the database, the same at each start, so
	// that what followers of a killed server left is looked for as soon as it is back.
	// "" is a new name.
	ServerID string

	// Before is called with what changed before any reader is told of it, and with
	// what a new Watch is for before it tells anything, so that the reader then reads
	// what the changes left. uuid.Nil is any conversation of the tenant. nil is none.
	Before func(ctx context.Context, tenantID string, conversationID uuid.UUID)
}

// A Hub passes changes on to its Watches. While it has none, it reads nothing.
type Hub struct {
	cfg Config
	id  string // in the signals of this server

	mu      sync.Mutex
	ended   bool // no more Watches
	closed  bool // and no more signals
	watches map[*Watch]bool
	stop    context.CancelFunc       // of the goroutines that read; nil while there is no Watch
	since   time.Time                // when the first of the Watches began
	told    map[uuid.UUID]told       // of conversations
	unread  map[conversationKey]bool // that changed
	unsent  map[conversationKey]bool // that other servers are to be told of
	follow  []*waiting               // of each follower
	sending bool
	wake    chan struct{}
	readers sync.WaitGroup
	logged  bool // that there are no signals
}

// A conversationKey names a conversation that changed.
type conversationKey struct {
	tenant       string // its hash
	conversation uuid.UUID
}

// told is the newest change of a conversation that was passed on.
type told struct {
	sequence int64
	at       time.Time
}

// New returns a Hub. Close ends it.
func New(cfg Config) *Hub {
	if cfg.Poll == 0 {
		cfg.Poll = DefaultPoll
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Hub{
		cfg: cfg, id: uuid.NewString()[:8], wake: make(chan struct{}, 1),
		watches: map[*Watch]bool{}, told: map[uuid.UUID]told{}, unread: map[conversationKey]bool{}, unsent: map[conversationKey]bool{},
	}
}

// Changed takes note that a conversation changed by this program, after the
// commit. It doesn't wait. tree.WithChangeHook calls it.
func (h *Hub) Changed(tenantID string, conversationID uuid.UUID) {
	key := conversationKey{hashOf(tenantID), conversationID}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.see(key)
	for _, w := range h.follow {
		w.add(tenantID, conversationID)
	}
	if h.cfg.Signals == nil {
		return
	}
	h.unsent[key] = true
	if !h.sending {
		h.sending = true
		h.readers.Go(h.send)
	}
}

// see has a conversation read if a Watch is for it. It runs under the lock.
func (h *Hub) see(key conversationKey) {
	for w := range h.watches {
		if w.covers(key) {
			h.unread[key] = true
			select {
			case h.wake <- struct{}{}:
			default:
			}
			return
		}
	}
}

// send tells other servers what changed, until nothing is left to tell. A signal
// that can't be sent is dropped: other servers look by themselves as well.
func (h *Hub) send() {
	ctx := context.Background()
	for {
		h.mu.Lock()
		closed := h.closed
		if len(h.unsent) == 0 {
			h.sending = false
			h.mu.Unlock()
			return
		}
		text := h.id
		for key := range h.unsent {
			if len(text) > maxSignal {
				break
			}
			text += " " + key.tenant + key.conversation.String()
			delete(h.unsent, key)
		}
		h.mu.Unlock()
		limited, cancel := context.WithTimeout(ctx, retryEvery)
		if err := h.cfg.Signals.Send(limited, text); err != nil {
			h.cfg.Logger.DebugContext(ctx, "other servers were not told what changed", "error", err)
		}
		cancel()
		if !closed {
			time.Sleep(sendEvery)
		}
	}
}

// heard takes note of what another server tells.
func (h *Hub) heard(text string) {
	words := strings.Fields(text)
	if len(words) == 0 || words[0] == h.id {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, word := range words[1:] {
		if len(word) != hashLength+36 {
			continue
		}
		if id, err := uuid.Parse(word[hashLength:]); err == nil {
			h.see(conversationKey{word[:hashLength], id})
		}
	}
}

const hashLength = 8

// hashOf stands for a tenant in signals. Two tenants of the same hash cost a look
// at each other's conversations, which finds nothing.
func hashOf(tenantID string) string {
	sum := sha256.Sum256([]byte(tenantID))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// Forget deletes old changes from time to time, until ctx is done.
func (h *Hub) Forget(ctx context.Context) {
	ticker := time.NewTicker(forgetting)
	defer ticker.Stop()
	for {
		if err := h.cfg.Store.Feed().Forget(ctx); err != nil && ctx.Err() == nil {
			h.cfg.Logger.WarnContext(ctx, "old changes could not be deleted", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// End ends all Watches, whose Next then returns ErrClosed, and begins no more.
func (h *Hub) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for w := range h.watches {
		w.fail(ErrClosed)
		delete(h.watches, w)
	}
	h.rest()
}

// Close ends all Watches, tells other servers what they weren't told yet, and
// waits until the Hub is done with the database.
func (h *Hub) Close() {
	h.End()
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.readers.Wait()
}

// rest ends reading. It runs under the lock.
func (h *Hub) rest() {
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	clear(h.told)
	clear(h.unread)
}

var (
	// ErrClosed says that the server ends.
	ErrClosed = fault.New(fault.Unavailable, "shutting_down", "", "The server is shutting down. Open the stream again, with the id of the last event.")
	// ErrSlow says that a reader is too far behind.
	ErrSlow = fault.New(fault.TooMany, "too_slow", "", "The stream was read too slowly. Open it again, with the id of the last event.")
)
