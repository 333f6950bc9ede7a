package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

const benchText = "A message of some length, as people write them to a model: neither a word nor a page."

// BenchmarkAppendHTTP appends by turns through the API and by the same SQL on
// one open connection, each to a line of its own, and compares the medians.
// Promised is a ratio of 2 at most.
func BenchmarkAppendHTTP(b *testing.B) {
	a := newAPI(b)
	conn, err := a.pool.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	overHTTP, overSQL := uuid.New(), uuid.New()
	webHead, sqlHead := line(b, a.store, overHTTP, 1000), line(b, a.store, overSQL, 1000)
	client := &http.Client{Transport: &http.Transport{}}
	var web, sql []time.Duration
	for b.Loop() {
		start := time.Now()
		webHead = a.appendOnce(client, overHTTP, webHead)
		web = append(web, time.Since(start))
		start = time.Now()
		sqlHead = appendSQL(b, conn, overSQL, sqlHead)
		sql = append(sql, time.Since(start))
	}
	report(b, web, sql, "http", "sql")
}

// report gives the medians of two series and their ratio.
func report(b *testing.B, x, y []time.Duration, xName, yName string) {
	median := func(times []time.Duration) float64 {
		slices.Sort(times)
		return float64(times[len(times)/2].Nanoseconds()) / 1000
	}
	b.ReportMetric(median(x), xName+"-p50-µs")
	b.ReportMetric(median(y), yName+"-p50-µs")
	b.ReportMetric(median(x)/median(y), "ratio")
	b.ReportMetric(0, "ns/op") // of both together, which says nothing
}

func (a *testAPI) appendOnce(client *http.Client, conversationID, parent uuid.UUID) uuid.UUID {
	id := uuid.Must(uuid.NewV7())
	body := fmt.Sprintf(`{"id":"%s","parent_id":"%s","role":"user","content":"%s"}`, id, parent, benchText)
	a.exchange(client, "POST", "/v1/conversations/"+conversationID.String()+"/messages", body, 201)
	return id
}

// exchange is a request without the checks of send.
func (a *testAPI) exchange(client *http.Client, method, path, body string, status int) {
	req, err := http.NewRequest(method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if err != nil || res.StatusCode != status {
		a.t.Fatalf("%s %s: status %d, %v", method, path, res.StatusCode, err)
	}
}

func appendSQL(b *testing.B, conn *pgxpool.Conn, conversationID, parent uuid.UUID) uuid.UUID {
	id := uuid.Must(uuid.NewV7())
	key := func(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }
	_, err := db.AppendInTurn(context.Background(), conn.Conn(), db.AppendMessageParams{
		ConversationID: key(conversationID), ParentID: key(parent), TenantID: tree.DefaultTenant, ID: key(id), Role: "user",
		Tokens: 20, CreatedAt: time.Now(), Body: []byte(`{"role":"user","content":"` + benchText + `"}`), SearchKey: db.SearchKey(tree.DefaultTenant, 1000, len(benchText)), MoveHead: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	return id
}

// BenchmarkTranscriptPage reads a page of 50 messages by turns at a depth of
// 100 and of 100,000. Promised is a ratio of 1.3 at most.
func BenchmarkTranscriptPage(b *testing.B) {
	a := newAPI(b)
	id := uuid.New()
	deepest := line(b, a.store, id, 100_000)
	var shallow uuid.UUID
	if err := a.pool.QueryRow(b.Context(), "select id from nodes where conversation_id = $1 and depth = 99", id).Scan(&shallow); err != nil {
		b.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	read := func(head uuid.UUID) time.Duration {
		start := time.Now()
		a.exchange(client, "GET", fmt.Sprintf("/v1/conversations/%s/branches/%s/transcript?limit=50", id, head), "", 200)
		return time.Since(start)
	}
	var top, bottom []time.Duration
	for b.Loop() {
		top = append(top, read(shallow))
		bottom = append(bottom, read(deepest))
	}
	report(b, bottom, top, "depth-100000", "depth-100")
}

// BenchmarkBind reads one message's request, without the database.
func BenchmarkBind(b *testing.B) {
	body := []byte(`{"id":"01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa","parent_id":"01979b2e-8f2b-7cc1-93a6-21e0b1c3f0ab","role":"user","content":"` + strings.Repeat(benchText, 10) + `"}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		o, err := parseObject(body)
		if err != nil {
			b.Fatal(err)
		}
		if err := new(appendBody).read(o); err != nil {
			b.Fatal(err)
		}
	}
}
