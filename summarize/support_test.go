package summarize

import (
	"encoding/json"
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

// messageBody is a message that says text.
func messageBody(role, text string) json.RawMessage {
	body, err := encode(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{role, text})
	if err != nil {
		panic(err)
	}
	return body
}

// withoutDigest are the settings of a Service whose digest never stands in.
func withoutDigest(s Settings) Settings {
	s.Digest = DigestNever
	return s
}

// sparse counts few tokens, so that what a witness has seen is never too long.
type sparse struct{}

func (sparse) Count(text string) int { return len(text) / 20 }
