package server

import (
	"sync"

	"github.com/google/uuid"
)

// A quota lets so many requests of one key be under way at a time. A server
// without keys has one for all.
type quota struct {
	what string // for people
	most int

	mu    sync.Mutex
	byKey map[uuid.UUID]int // of keys that have some
}

func newQuota(what string, most int) *quota {
	return &quota{what: what, most: most, byKey: make(map[uuid.UUID]int)}
}

// enter counts a request. Where one is over the quota, nothing waits: streams
// last, and a client knows which of them it can end.
func (q *quota) enter(key uuid.UUID) (leave func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byKey[key] >= q.most {
		return nil, problemf(CodeTooManyStreams, "", "The key has %d streams of %s open, which is the most. End one, and send the request again.", q.most, q.what)
	}
	q.byKey[key]++
	return func() { q.leave(key) }, nil
}

func (q *quota) leave(key uuid.UUID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byKey[key]--; q.byKey[key] == 0 {
		delete(q.byKey, key)
	}
}
