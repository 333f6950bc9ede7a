package db

import (
	"context"
	"slices"
	"sync"
)

// Turns let a number of callers have each key at a time. The others wait in the
// order in which they came.
type Turns[K comparable] struct {
	most int
	mu   sync.Mutex
	keys map[K]*turn // that somebody has
}

// A turn is who has a key, and who waits for it.
type turn struct {
	had     int
	waiting []chan struct{} // each is closed when its caller has the key
}

// NewTurns returns Turns of which at most so many callers have one key.
func NewTurns[K comparable](most int) *Turns[K] {
	return &Turns[K]{most: most, keys: make(map[K]*turn)}
}

// Take waits until the caller has the key, and returns how it gives the key back. It
// returns the context's error if that ends first. A caller that takes a second turn
// while it has one may wait for itself.
func (t *Turns[K]) Take(ctx context.Context, key K) (leave func(), err error) {
	leave = func() { t.leave(key) }
	t.mu.Lock()
	k := t.keys[key]
	if k == nil {
		k = new(turn)
		t.keys[key] = k
	}
	if k.had < t.most {
		k.had++
		t.mu.Unlock()
		return leave, nil
	}
	has := make(chan struct{})
	k.waiting = append(k.waiting, has)
	t.mu.Unlock()
	select {
	case <-has:
		return leave, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(k.waiting, has)
	if i >= 0 {
		k.waiting = slices.Delete(k.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 { // it came meanwhile
		leave()
	}
	return nil, ctx.Err()
}

// Waiting returns how many callers wait for a key.
func (t *Turns[K]) Waiting(key K) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keys[key] == nil {
		return 0
	}
	return len(t.keys[key].waiting)
}

// leave gives a key to the caller that waits longest for it.
func (t *Turns[K]) leave(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.keys[key]
	if len(k.waiting) > 0 {
		close(k.waiting[0])
		k.waiting = slices.Delete(k.waiting, 0, 1)
		return
	}
	if k.had--; k.had == 0 {
		delete(t.keys, key)
	}
}
