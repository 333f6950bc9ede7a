package search

import (
	"os"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

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
