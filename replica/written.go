package replica

import (
	"math"
	"sync"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

// mostPlaces bounds what is remembered while a replica is away.
const mostPlaces = 100_000

// everywhere stands for the conversation of a write that names none.
var everywhere = uuid.Max

// A place is a conversation of a tenant. uuid.Nil is the tenant's lists, which
// each of its writes may change.
type place struct {
	tenant       string
	conversation uuid.UUID
}

// written remembers how far the replica must be to show what this server wrote.
type written struct {
	mu       sync.Mutex
	last     map[place]db.Position
	newest   db.Position // of all writes
	floor    db.Position // of all places: what was forgotten, or written before the start
	unknowns int         // writes whose position couldn't be asked
	replayed db.Position // by the replica, or more
}

// nowhere is a position that no replica reaches.
const nowhere = db.Position(math.MaxInt64)

func newWritten() *written { return &written{last: map[place]db.Position{}, floor: nowhere} }

// note remembers a write. A conversation of uuid.Nil stands for any of the
// tenant's.
func (w *written) note(tenant string, conversation uuid.UUID, p db.Position) {
	if conversation == uuid.Nil {
		conversation = everywhere
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.newest = max(w.newest, p)
	if len(w.last) >= mostPlaces {
		w.sweep()
	}
	if len(w.last) >= mostPlaces {
		for _, q := range w.last {
			w.floor = max(w.floor, q)
		}
		clear(w.last)
	}
	for _, at := range []place{{tenant, conversation}, {tenant, uuid.Nil}} {
		w.last[at] = max(w.last[at], p)
	}
}

// noteUnknown remembers a write whose position isn't known. All reads then go to
// the primary until settle is called with a position that was read later.
func (w *written) noteUnknown() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unknowns++
	w.floor = nowhere
}

// begun returns what settle wants to know of the time before a position was read.
func (w *written) begun() (unknowns int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unknowns
}

// settle gives writes of unknown positions one that is later than theirs.
func (w *written) settle(begun int, p db.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.floor == nowhere && w.unknowns == begun {
		w.floor = p
	}
}

// wants returns how far the replica must be for a read. A conversation of uuid.Nil
// stands for the tenant's lists.
func (w *written) wants(tenant string, conversation uuid.UUID) (p db.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p = max(w.floor, w.last[place{tenant, conversation}])
	if conversation != uuid.Nil {
		p = max(p, w.last[place{tenant, everywhere}])
	}
	return p
}

// furthest returns how far a replica must be for all writes that are known.
func (w *written) furthest() db.Position {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(w.newest, w.floor)
}

// advance remembers how far the replica is.
func (w *written) advance(p db.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replayed = max(w.replayed, p)
}

// reached returns how far the replica is known to be.
func (w *written) reached() db.Position {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.replayed
}

// doubt forgets how far the replica is: after a crash it may be further back. It
// must then come as far again before it serves any read.
func (w *written) doubt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.floor, w.replayed = max(w.floor, w.replayed), 0
}

// forget drops what the replica has.
func (w *written) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweep()
}

func (w *written) sweep() {
	for at, p := range w.last {
		if p <= w.replayed {
			delete(w.last, at)
		}
	}
}
