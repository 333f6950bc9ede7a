package tree

import "time"

// WithSearchTimeout sets another one than SearchTimeout.
func WithSearchTimeout(d time.Duration) Option {
	return func(s *Store) { s.searchTimeout = d }
}

// WithMostFound has an index asked only where it is expected to find so many.
func WithMostFound(n int) Option {
	return func(s *Store) { s.mostFound = n }
}
