package server

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// compacted makes a conversation of one line of which a summary of the offline
// digest folds so many messages, before a tail.
func compacted(b *testing.B, a *testAPI, folded, tail int) (conversationID, head uuid.UUID) {
	b.Helper()
	conversationID = uuid.New()
	head = line(b, a.store, conversationID, folded+tail)
	service, err := summarize.New(a.store, summarize.Config{})
	if err != nil {
		b.Fatal(err)
	}
	k, err := service.Compact(b.Context(), conversationID, head, summarize.TriggerRequest, &summarize.Demand{KeepRecentMessages: tail})
	if err != nil {
		b.Fatal(err)
	}
	if k.Outcome != tree.OutcomeSaved || k.FoldedMessages != folded {
		b.Fatalf("compaction %s: %d messages folded, want %d: %s", k.Outcome, k.FoldedMessages, folded, k.Reason)
	}
	return conversationID, head
}

// analyze tells Postgres how large its tables are, as autovacuum does a minute
// after they have grown.
func analyze(b *testing.B, pool *pgxpool.Pool) {
	b.Helper()
	if _, err := pool.Exec(b.Context(), "analyze"); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkContextHTTP asks by turns for a context through the API and for the
// rows of it by the same walk on one open connection, and compares the medians.
// Promised is a ratio of 1.5 at most.
func BenchmarkContextHTTP(b *testing.B) {
	a := newAPI(b)
	conn, err := a.pool.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	client := &http.Client{Transport: &http.Transport{}}
	for _, tail := range []int{50, 200, 1000} {
		b.Run(fmt.Sprint("tail=", tail), func(b *testing.B) {
			a := a.with(b)
			id, head := compacted(b, a, 300, tail)
			analyze(b, a.pool)
			path := branchContext(id, head)
			var web, sql []time.Duration
			for b.Loop() {
				start := time.Now()
				a.exchange(client, "GET", path, "", 200)
				web = append(web, time.Since(start))
				start = time.Now()
				walk(b, conn, id, head, tail)
				sql = append(sql, time.Since(start))
			}
			report(b, web, sql, "http", "sql")
		})
	}
}

func branchContext(conversationID, head uuid.UUID) string {
	return fmt.Sprintf("/v1/conversations/%s/branches/%s/context", conversationID, head)
}

// walk is the query behind a context, and nothing else.
func walk(b *testing.B, conn *pgxpool.Conn, conversationID, head uuid.UUID, tail int) {
	key := func(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }
	rows, err := db.New(conn).GetView(b.Context(), db.GetViewParams{
		WithBodies: true, ConversationID: key(conversationID), HeadID: key(head), TenantID: tree.DefaultTenant, Budget: 1 << 40,
	})
	if err != nil || len(rows) <= tail {
		b.Fatalf("%d rows, %v", len(rows), err)
	}
}

// BenchmarkContextDepth asks by turns for the context of a branch with 100
// messages above the cutoff and of one with 100,000. Promised is a ratio of 1.2
// at most.
func BenchmarkContextDepth(b *testing.B) {
	const tail = 50
	a := newAPI(b)
	shallow, shallowHead := compacted(b, a, 100, tail)
	deep, deepHead := compacted(b, a, 100_000, tail)
	analyze(b, a.pool)
	client := &http.Client{Transport: &http.Transport{}}
	read := func(id, head uuid.UUID) time.Duration {
		start := time.Now()
		a.exchange(client, "GET", branchContext(id, head), "", 200)
		return time.Since(start)
	}
	var top, bottom []time.Duration
	for b.Loop() {
		top = append(top, read(shallow, shallowHead))
		bottom = append(bottom, read(deep, deepHead))
	}
	report(b, bottom, top, "above-100000", "above-100")
}
