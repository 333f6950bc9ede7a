package tree

import (
	"time"
)

// WithSearchTimeout sets another one than SearchTimeout.
func WithSearchTimeout(d time.Duration) Option {
	return func(s *Store) { s.searchTimeout = d }
}
