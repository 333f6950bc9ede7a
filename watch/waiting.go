package watch

import (
	"sync"

	"github.com/google/uuid"
)

// waiting are conversations that wait for a follower, each once. Tenants take turns,
// so that one tenant's import doesn't keep another's message waiting.
type waiting struct {
	mu      sync.Mutex
	tenants []string // that have some, in turn
	of      map[string][]uuid.UUID
	there   map[uuid.UUID]bool
	ready   chan struct{}
}

// mostWaiting bounds the memory. What is beyond it is found in the feed.
const mostWaiting = 10_000

func newWaiting() *waiting {
	return &waiting{of: map[string][]uuid.UUID{}, there: map[uuid.UUID]bool{}, ready: make(chan struct{}, 1)}
}

func (w *waiting) add(tenant string, id uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.there[id] || len(w.there) >= mostWaiting {
		return
	}
	w.there[id] = true
	if len(w.of[tenant]) == 0 {
		w.tenants = append(w.tenants, tenant)
	}
	w.of[tenant] = append(w.of[tenant], id)
	w.ring()
}

// take gives up to n of them, one of each tenant in turn.
func (w *waiting) take(n int) (ids []uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(ids) < n && len(w.tenants) > 0 {
		tenant := w.tenants[0]
		of := w.of[tenant]
		ids = append(ids, of[0])
		delete(w.there, of[0])
		if w.tenants = w.tenants[1:]; len(of) > 1 {
			w.of[tenant] = of[1:]
			w.tenants = append(w.tenants, tenant)
		} else {
			delete(w.of, tenant)
		}
	}
	if len(w.tenants) > 0 {
		w.ring()
	}
	return ids
}

func (w *waiting) ring() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}
