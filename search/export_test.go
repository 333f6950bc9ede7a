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

// AddSegments names chunks together, size at a time, until no more than a quarter
// more are left.
func AddSegments(ctx context.Context, store *tree.Store, size int) (segments int, err error) {
	for {
		added, err := store.Index().AddSegment(ctx, size, makeSegment)
		if err != nil || !added {
			return segments, err
		}
		segments++
	}
}
