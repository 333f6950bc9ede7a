package db

import (
	"context"
	"slices"
	"sync"
)

// A KeyedSemaphore lets a number of callers hold each key at a time. The others wait
// in the order in which they came.
type KeyedSemaphore[K comparable] struct {
	most int
	mu   sync.Mutex
	keys map[K]*holders // of keys that somebody holds
}

// holders are the callers that hold a key, and those that wait for it.
type holders struct {
	held    int
	waiting []chan struct{} // each is closed when its caller holds the key
}

// NewKeyedSemaphore returns a KeyedSemaphore of which at most so many callers hold one key.
func NewKeyedSemaphore[K comparable](most int) *KeyedSemaphore[K] {
	return &KeyedSemaphore[K]{most: most, keys: make(map[K]*holders)}
}

// Acquire waits until the caller holds the key, and returns how it releases the key. It
// returns the context's error if that ends first. A caller that holds a key and
// acquires it again may wait for itself.
func (s *KeyedSemaphore[K]) Acquire(ctx context.Context, key K) (release func(), err error) {
	release = func() { s.release(key) }
	s.mu.Lock()
	k := s.keys[key]
	if k == nil {
		k = new(holders)
		s.keys[key] = k
	}
	if k.held < s.most {
		k.held++
		s.mu.Unlock()
		return release, nil
	}
	has := make(chan struct{})
	k.waiting = append(k.waiting, has)
	s.mu.Unlock()
	select {
	case <-has:
		return release, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(k.waiting, has)
	if i >= 0 {
		k.waiting = slices.Delete(k.waiting, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 { // it came meanwhile
		release()
	}
	return nil, ctx.Err()
}

// Waiting returns how many callers wait for a key.
func (s *KeyedSemaphore[K]) Waiting(key K) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[key] == nil {
		return 0
	}
	return len(s.keys[key].waiting)
}

// release hands a key to the caller that waits longest for it.
func (s *KeyedSemaphore[K]) release(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[key]
	if len(k.waiting) > 0 {
		close(k.waiting[0])
		k.waiting = slices.Delete(k.waiting, 0, 1)
		return
	}
	if k.held--; k.held == 0 {
		delete(s.keys, key)
	}
}
