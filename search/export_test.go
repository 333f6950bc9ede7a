package search

import (
	"context"
	"time"

	"github.com/coppice-chat/coppice/tree"
)

// WithMostRead sets how many bytes of texts a question reads.
func WithMostRead(bytes int) Option { return func(s *Service) { s.mostRead = bytes } }

// AddSegments names chunks together, so many at a time, until no more than a quarter more
// are left, and makes two small segments a large one.
func AddSegments(ctx context.Context, store *tree.Store, chunks int) (segments int, err error) {
	return addSegments(ctx, store, chunks, 2)
}

// LookedUpTo has the service know all changes of a tenant's up to a time, as a look does
// that comes so much later that it covers late commits.
func (s *Service) LookedUpTo(store *tree.Store, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.behind[store.TenantID()]
	known.since = at
	s.behind[store.TenantID()] = known
}
