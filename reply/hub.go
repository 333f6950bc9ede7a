package reply

import (
	"sync"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
)

// key names a reply: by the tenant, too, because ids of conversations may be
// guessed.
type key struct {
	tenant                  string
	conversation, messageID uuid.UUID
}

// A hub knows the replies that this server runs. What ended is in the database.
type hub struct {
	maxRunning, maxPerTenant int

	mu      sync.Mutex
	closed  bool
	running map[*Reply]bool // and whether it is stored that they run
	tenants map[string]int  // running, by tenant
	counts  Stats
	busy    sync.WaitGroup // with all that run
}

func newHub(maxRunning, maxPerTenant int) *hub {
	return &hub{maxRunning: maxRunning, maxPerTenant: maxPerTenant, running: map[*Reply]bool{}, tenants: map[string]int{}}
}

// find gives the reply of a key, if it is stored that it runs. known tells whether
// there is one at all.
func (h *hub) find(k key) (found *Reply, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r, stored := range h.running {
		if r.key == k {
			if known = true; stored {
				return r, true
			}
		}
	}
	return nil, known
}

// begin takes replies of one tenant in, of which nothing is stored yet: all or none.
func (h *hub) begin(replies ...*Reply) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	tenant, n := replies[0].tenant, len(replies)
	full := func(whose string, running, most int) error {
		return fault.New(fault.TooMany, "too_many_replies", "",
			"%s %d replies are under way, and %d is the most. Wait for one to end, or stop one.", whose, running, most)
	}
	switch {
	case h.closed:
		return errClosed
	case h.tenants[tenant]+n > h.maxPerTenant:
		return full("Your", h.tenants[tenant], h.maxPerTenant)
	case len(h.running)+n > h.maxRunning:
		return full("The server's", len(h.running), h.maxRunning)
	}
	h.busy.Add(n)
	for _, r := range replies {
		h.running[r] = false
	}
	h.tenants[tenant] += n
	return nil
}

// stored takes note that it is stored that a reply runs.
func (h *hub) stored(r *Reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[r] = true
}

// end takes note that a reply no longer runs, and has the end told, in one step:
// who hears of it finds room for the next reply.
func (h *hub) end(r *Reply, status Status, tell func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	tell()
	delete(h.running, r)
	if h.tenants[r.tenant]--; h.tenants[r.tenant] == 0 {
		delete(h.tenants, r.tenant)
	}
	switch status {
	case StatusCompleted:
		h.counts.Completed++
	case StatusStopped:
		h.counts.Stopped++
	case StatusFailed:
		h.counts.Failed++
	}
	h.busy.Done()
}

// close lets no more replies in. The channel is closed when the last one has
// ended.
func (h *hub) close() <-chan struct{} {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		h.busy.Wait()
		close(idle)
	}()
	return idle
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
