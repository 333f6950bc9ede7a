package summarize

import (
	"encoding/json"
	"github.com/coppice-chat/coppice/internal/check"
	"os"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// messageBody is a message that says text.
func messageBody(role, text string) json.RawMessage {
	return tree.Text(tree.Role(role), text).Message.Raw
}

// withoutDigest are the settings of a Service whose digest never stands in.
func withoutDigest(s Settings) Settings {
	s.Digest = DigestNever
	return s
}

// sparse counts few tokens, so that what a witness has seen is never too long.
type sparse struct{}

func (sparse) Count(text string) int { return len(text) / 20 }

// compact is a compaction on demand that has to save.
func compact(t *testing.T, s *Service, id, head uuid.UUID, d Demand) tree.Compaction {
	t.Helper()
	k, err := s.Compact(t.Context(), id, head, TriggerRequest, &d)
	check.Need(t, err == nil && k.Outcome == tree.OutcomeSaved, "%s: %s, %v", k.Outcome, k.Reason, err)
	return k
}

var shared struct {
	once sync.Once
	pool *pgxpool.Pool
	done func()
}

// database is shared by this package's tests: each has conversations of its own.
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
