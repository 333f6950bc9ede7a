package summarize

import (
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
)

var shared struct {
	once sync.Once
	pool *pgxpool.Pool
	done func()
}

// database is the one that the tests of this package share: each has conversations
// of its own.
func database() *pgxpool.Pool {
	shared.once.Do(func() { shared.pool, shared.done = dbtest.Example(dbtest.MaxConns(12)) })
	return shared.pool
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.done != nil {
		shared.done()
	}
	os.Exit(code)
}
