package reply

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
)

// key names a reply: by the tenant, too, because ids of conversations may be
// guessed.
type key struct {
	tenant                  string
	conversation, messageID uuid.UUID
}

// maxKeptBytes bounds the memory of replies that ended. The oldest are
// forgotten first; their answers are still stored.
const maxKeptBytes = 64 << 20

// A hub knows the replies that run, and those that ended lately.
type hub struct {
	maxRunning, maxPerTenant int
	keep                     time.Duration
	maxBytes                 int

	mu        sync.Mutex
	closed    bool
	replies   map[key]*Reply
	running   map[*Reply]bool
	tenants   map[string]int // running, by tenant
	kept      []kept         // ended, the oldest first
	keptBytes int
	counts    Stats
	idle      chan struct{} // closed once the hub is, and no reply runs
}

type kept struct {
	reply *Reply
	bytes int
	timer *time.Timer
}

func newHub(maxRunning, maxPerTenant int, keep time.Duration) hub {
	return hub{
		maxRunning: maxRunning, maxPerTenant: maxPerTenant, keep: keep, maxBytes: maxKeptBytes, idle: make(chan struct{}),
		replies: map[key]*Reply{}, running: map[*Reply]bool{}, tenants: map[string]int{},
	}
}

func (h *hub) find(k key) *Reply {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.replies[k]
}

// begin takes a reply in, unless one of its id is there, which it gives
// instead. One that ended with nothing stored makes room: asking again with its
// id is a new attempt.
func (h *hub) begin(r *Reply) (there *Reply, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if there := h.replies[r.key]; there != nil && (there.runs() || there.stored()) {
		return there, nil
	}
	busy := func(whose string, most int) error {
		return fault.New(fault.TooMany, "too_many_replies", "",
			"%s %d replies are under way, which is the most. Wait for one to end, or stop one.", whose, most)
	}
	switch {
	case h.closed:
		return nil, errClosed
	case h.tenants[r.key.tenant] >= h.maxPerTenant:
		return nil, busy("Your", h.maxPerTenant)
	case len(h.running) >= h.maxRunning:
		return nil, busy("The server's", h.maxRunning)
	}
	h.replies[r.key] = r
	h.running[r] = true
	h.tenants[r.key.tenant]++
	return nil, nil
}

// end takes note that a reply no longer runs, and has the end told, in one step:
// who hears of it finds room for the next reply, and finds this one just where
// it is to be kept, for a while.
func (h *hub) end(r *Reply, status Status, keep bool, tell func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	tell()
	delete(h.running, r)
	if h.tenants[r.key.tenant]--; h.tenants[r.key.tenant] == 0 {
		delete(h.tenants, r.key.tenant)
	}
	switch status {
	case StatusCompleted:
		h.counts.Completed++
	case StatusStopped:
		h.counts.Stopped++
	case StatusFailed:
		h.counts.Failed++
	}
	if keep && !h.closed && h.replies[r.key] == r {
		h.remember(r)
	} else if h.replies[r.key] == r {
		delete(h.replies, r.key)
	}
	h.finish()
}

// remember keeps a reply that ended for a while.
func (h *hub) remember(r *Reply) {
	timer := time.AfterFunc(h.keep, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.forget(r)
	})
	size := r.size()
	h.kept = append(h.kept, kept{r, size, timer})
	for h.keptBytes += size; h.keptBytes > h.maxBytes && len(h.kept) > 1; {
		h.forget(h.kept[0].reply)
	}
}

// forget drops a reply that was remembered.
func (h *hub) forget(r *Reply) {
	for i, k := range h.kept {
		if k.reply == r {
			k.timer.Stop()
			h.keptBytes -= k.bytes
			h.kept = slices.Delete(h.kept, i, i+1)
			break
		}
	}
	if h.replies[r.key] == r {
		delete(h.replies, r.key)
	}
}

// close lets no more replies in. The channel is closed when the last one has
// ended.
func (h *hub) close() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for len(h.kept) > 0 {
		h.forget(h.kept[0].reply)
	}
	h.finish()
	return h.idle
}

func (h *hub) finish() {
	if !h.closed || len(h.running) > 0 {
		return
	}
	select {
	case <-h.idle:
	default:
		close(h.idle)
	}
}

func (h *hub) cancelAll(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.running {
		r.cancel(cause)
	}
}

func (h *hub) stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.counts
	s.Running = len(h.running)
	return s
}
