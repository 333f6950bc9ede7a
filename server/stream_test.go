package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// line stores n messages, one under the other, and gives the last.
func line(t testing.TB, store *tree.Store, conversationID uuid.UUID, n int) (head uuid.UUID) {
	t.Helper()
	check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{ID: conversationID}))(t)
	body := json.RawMessage(`{"role":"user","content":"` + strings.Repeat("Tell me about hazel, ash and oak. ", 10) + `"}`)
	for n > 0 {
		chain := make([]tree.NewMessage, min(n, tree.MaxChain))
		for i := range chain {
			chain[i].Message = chat.Read(body)
		}
		stored := check.Must(store.AppendChain(t.Context(), conversationID, head, chain))(t)
		n -= len(stored.Messages)
		head = stored.Messages[len(stored.Messages)-1].ID
	}
	return head
}

// TestTreeThatEndsEarly reads a tree that is larger than the buffers between
// server and reader, whose reader leaves and whose database goes away.
func TestTreeThatEndsEarly(t *testing.T) {
	t.Parallel()
	pool, cut := cuttable(t, dbtest.New(t))
	a := newAPIOn(t, pool)
	id := uuid.New()
	line(t, a.store, id, 4000)
	a.narrow()
	read := func(a *testAPI) *http.Response {
		res := check.Must(http.DefaultTransport.RoundTrip(a.newRequest(request{method: "GET", path: "/v1/conversations/" + id.String() + "/tree?preview=200"})))(a.t)
		if res.StatusCode != 200 {
			a.t.Fatalf("status %d", res.StatusCode)
		}
		return res
	}
	// logged waits for the line of the n-th request.
	logged := func(t *testing.T, n int) map[string]any {
		check.Eventually(t, "the tree to end", func() bool { return len(a.lines()) >= n })
		return a.lines()[n-1]
	}

	t.Run("with its reader", func(t *testing.T) {
		a := a.with(t)
		read(a).Body.Close()
		if l := logged(t, 1); l["cut"] != true || l["level"] != "INFO" || l["code"] != "request_canceled" {
			t.Errorf("the log says %v", l)
		}
		check.Eventually(t, "its connection to be free", func() bool { return a.pool.Stat().AcquiredConns() == 0 })
	})

	// The answer must not end like a whole one.
	t.Run("with its database", func(t *testing.T) {
		a := a.with(t)
		res := read(a)
		defer res.Body.Close()
		check.Must(io.CopyN(io.Discard, res.Body, 1000))(t)
		cut()
		if n, err := io.Copy(io.Discard, res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %d bytes more the answer ended with %v, want a cut", n, err)
		}
		if l := logged(t, 2); l["cut"] != true || l["level"] != "ERROR" || l["error"] == nil || l["code"] != "database_unavailable" {
			t.Errorf("the log says %v", l)
		}
	})
}

// cuttable gives a pool on the same database, and what cuts all of its
// connections. To end them in Postgres would not do: what it has sent by then,
// which can be the whole tree, still arrives.
func cuttable(t *testing.T, pool *pgxpool.Pool) (_ *pgxpool.Pool, cut func()) {
	t.Helper()
	config := pool.Config()
	dial := config.ConnConfig.DialFunc
	var mu sync.Mutex
	var open []net.Conn
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			open = append(open, conn)
		}
		return conn, err
	}
	own := check.Must(pgxpool.NewWithConfig(t.Context(), config))(t)
	t.Cleanup(own.Close)
	return own, func() {
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range open {
			conn.Close()
		}
	}
}
