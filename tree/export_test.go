package tree

import (
	"time"
)

// WithSearchTimeout sets another one than SearchTimeout.
func WithSearchTimeout(d time.Duration) Option {
	return func(s *Store) { s.searchTimeout = d }
}

// Count waits until the tenant's messages are counted, so that no append begins a
// count beside it.
func (s *Store) Count() { <-s.sizes.recount(s.tenant) }
