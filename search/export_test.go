package search

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
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

var shared struct {
	once sync.Once
	pool *pgxpool.Pool
	done func()
}

// Database is the one that the tests of this package share.
func Database() *pgxpool.Pool {
	shared.once.Do(func() { shared.pool, shared.done = dbtest.Example(dbtest.MaxConns(12)) })
	return shared.pool
}

// NewStore is the store of a tenant that no other test has.
func NewStore() *tree.Store { return tree.New(Database()).ForTenant(uuid.NewString()) }

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.done != nil {
		shared.done()
	}
	os.Exit(code)
}
