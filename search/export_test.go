package search

import (
	"context"
	"time"

	"github.com/coppice-chat/coppice/tree"
)

// WithTimeout sets another one than Timeout.
func WithTimeout(d time.Duration) Option { return func(s *Service) { s.timeout = d } }

// WithMostRead sets how many bytes of texts a question reads.
func WithMostRead(bytes int) Option { return func(s *Service) { s.mostRead = bytes } }

// AddSegments names chunks together, so many at a time, until no more than a quarter more
// are left, and makes two small segments a large one.
func AddSegments(ctx context.Context, store *tree.Store, chunks int) (segments int, err error) {
	return addSegments(ctx, store, chunks, 2)
}
