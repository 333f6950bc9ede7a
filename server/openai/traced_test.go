package openai_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/tree"
)

// traced is another server on the same database. do runs after each query of a
// name, before what comes of it is known. On a distributed database a conversation is
// inserted by AddConversation, in a transaction of its own: there do runs after that.
func (a *api) traced(t *testing.T, query string, do func()) *api {
	t.Helper()
	config := a.pool.Config()
	config.ConnConfig.Tracer = tracer{"-- name: " + query + " ", do, &sync.Map{}}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	other := *a
	other.pool, other.store = pool, tree.New(pool)
	other.serve(openai.Recognition{})
	return &other
}

type tracer struct {
	query string
	do    func()
	added *sync.Map // connections on which AddConversation ran, and no commit yet
}

type tracedQuery struct{}

func (t tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	is := strings.HasPrefix(data.SQL, t.query)
	switch {
	case strings.HasPrefix(data.SQL, "-- name: AddConversation ") && strings.Contains(t.query, " InsertConversation "):
		t.added.Store(conn, true)
	case data.SQL == "commit":
		_, is = t.added.LoadAndDelete(conn)
	}
	return context.WithValue(ctx, tracedQuery{}, is)
}

func (t tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(tracedQuery{}) == true {
		t.do()
	}
}
