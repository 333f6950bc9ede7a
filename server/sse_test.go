package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/tree"
)

// TestDroppedClients has many clients leave at every moment of a reply. Nothing of
// them stays but their answers. It counts goroutines, so it doesn't run beside other tests.
func TestDroppedClients(t *testing.T) {
	const clients, atOnce = 150, 30
	fake := llmtest.NewServer(t)
	fake.Otherwise(llmtest.Answer(llmtest.Text(800)))
	a := newAPI(t, withModels(func(c *reply.Config) { c.MaxRunning, c.MaxPerTenant = clients, clients }, model(t, fake)), func(c *Config) { c.MaxStreams = clients })
	plant(t, a.store, "c")
	transport := &http.Transport{MaxIdleConnsPerHost: atOnce}
	var accepted atomic.Int64
	drop := func(i int) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		if i%10 == 0 { // before it knows anything
			time.AfterFunc(time.Duration(i)*50*time.Microsecond, leave)
		}
		res, err := transport.RoundTrip(a.newRequest(streamed(ask(replyPathOf, ""))).WithContext(ctx))
		if err != nil {
			return
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("client %d: %d", i, res.StatusCode)
			return
		}
		accepted.Add(1)
		_, _ = io.CopyN(io.Discard, res.Body, int64(i)*60) // up to more than there is
		if i%3 == 0 {
			again, err := transport.RoundTrip(a.newRequest(request{method: "GET", path: res.Header.Get("Location")}).WithContext(ctx))
			if err == nil {
				_, _ = io.CopyN(io.Discard, again.Body, int64(i))
				again.Body.Close()
			}
		}
	}
	rest := func() (goroutines int) {
		check.Eventually(t, "the replies to end", func() bool { return a.server.cfg.Replies.Stats().Running == 0 })
		transport.CloseIdleConnections()
		fake.Client().CloseIdleConnections()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		a.pool.Reset() // pgx may go on reading a connection, whose write was slow, until something comes
		return runtime.NumGoroutine()
	}
	drop(clients)
	baseline := 0
	check.Eventually(t, "quiet", func() bool {
		before := baseline
		baseline = rest()
		return baseline == before
	})
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range clients {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			drop(i)
		})
	}
	all.Wait()
	defer func() {
		if t.Failed() { // which of them stayed
			_ = pprof.Lookup("goroutine").WriteTo(t.Output(), 1)
		}
	}()
	check.Eventually(t, fmt.Sprintf("%d goroutines", baseline), func() bool { return rest() <= baseline })
	check.Eventually(t, "no connection to the database in use", func() bool { return a.pool.Stat().AcquiredConns() == 0 })
	s := a.server.cfg.Replies.Stats()
	var stored uint64
	check.NoError(t, a.pool.QueryRow(t.Context(), "select count(*) from nodes where metadata->'reply'->>'status' = 'completed'").Scan(&stored))
	if n := uint64(accepted.Load()); s.Failed+s.Stopped > 0 || s.Completed < n || n < clients*8/10 || stored != s.Completed {
		t.Errorf("%d clients were accepted, and %d answers are stored: %+v", n, stored, s)
	}
}

// A smallListener gives connections that hold little on their way.
type smallListener struct{ net.Listener }

func (l smallListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

// narrow serves the API once more, by connections that hold little on their way.
func (a *testAPI) narrow() {
	a.t.Helper()
	inner := check.Must(net.Listen("tcp", "127.0.0.1:0"))(a.t)
	web := a.server.HTTPServer("")
	served := make(chan error, 1)
	go func() { served <- web.Serve(smallListener{inner}) }()
	a.t.Cleanup(func() {
		web.Close()
		<-served
	})
	a.url = "http://" + inner.Addr().String()
}

// A reader that stands still holds up nobody, is cut off, and can read on.
func TestReaderThatStandsStill(t *testing.T) {
	t.Parallel()
	text := llmtest.Text(600_000)
	fake := llmtest.NewServer(t, llmtest.Answer(text))
	a := newAPI(t, withModels(nil, model(t, fake)))
	plant(t, a.store, "c")
	impatient := newAPIOn(t, a.pool, func(c *Config) {
		c.Replies, c.Contexts, c.RequestTimeout = a.server.cfg.Replies, a.server.cfg.Contexts, time.Second
	})
	impatient.narrow()
	other := a.listen(t.Context(), ask(replyPathOf, ""))
	stuck := impatient.dial()
	fmt.Fprintf(stuck, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", other.res.Header.Get("Location"))
	head, err := http.ReadResponse(bufio.NewReaderSize(stuck, 16), nil)
	if err != nil || head.StatusCode != 200 {
		t.Fatal(head, err)
	}
	end := other.toEnd()
	check.Need(t, end.name == "reply.completed" && other.text == text, "%s after %d bytes", end.name, len(other.text))
	check.Eventually(t, "the end of the one that stands still", func() bool {
		for _, line := range impatient.lines() {
			if line["cut"] == true && line["code"] == "request_canceled" && line["route"] == "/v1/conversations/{conversation_id}/replies/{message_id}/events" {
				return true
			}
		}
		return false
	})
	got, err := io.ReadAll(stuck)
	check.That(t, err != nil || !bytes.Contains(got, []byte("reply.completed")), "it got all %d bytes", len(got))
}

// TestSignsOfLife has a model that is silent.
func TestSignsOfLife(t *testing.T) {
	t.Parallel()
	m := paced{make(chan string)}
	a := newAPI(t, withModels(nil, m), func(c *Config) { c.Heartbeat = 10 * time.Millisecond })
	plant(t, a.store, "c")
	l := a.listen(t.Context(), ask(replyPathOf, ""))
	silence := l.bounded()
	for signs := 0; signs < 5; {
		e := check.Must(l.next())(t)
		if e.name == "comment" {
			signs++
		}
	}
	silence.Stop()
	m.pieces <- "Yes."
	close(m.pieces)
	end := l.toEnd()
	check.That(t, end.name == "reply.completed" && l.text == "Yes.", "%+v, %q", end, l.text)
}

// TestEventsReachTheirReader holds that whatever an event says, a reader gets it.
func TestEventsReachTheirReader(t *testing.T) {
	t.Parallel()
	plain := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace
	for _, text := range []string{"", "a", "a\nb", "\r", "\r\n\r\n", "a\u2028b\u2029c\u0085", "data: x\n\nid: 5\nevent: evil\n\n", "\x00\ufeff", "é🌳<&>\"\\", ": ", "\n:\n"} {
		event := appendEvent(nil, 12, "reply.delta", []byte(text))
		e, err := readEvent(bufio.NewReader(bytes.NewReader(event)))
		want := (serverEvent{"12", "reply.delta", plain(text)})
		check.That(t, err == nil && e == want && !bytes.ContainsRune(event, '\r'), "%+v, %v, want %+v", e, err, want)
		name, data, err := eventOf(reply.Event{ID: 3, Delta: &reply.Delta{Content: text, ToolCalls: []json.RawMessage{[]byte("{\r\n \"index\" :\n0}")}}})
		check.NoError(t, err)
		e = check.Must(readEvent(bufio.NewReader(bytes.NewReader(appendEvent(nil, 3, name, data)))))(t)
		var got struct{ Content string }
		check.JSON(t, e.data, &got)
		check.Equal(t, "the content", got.Content, text)
	}
}

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
		check.Need(a.t, res.StatusCode == 200, "status %d", res.StatusCode)
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
		l := logged(t, 1)
		check.That(t, l["cut"] == true && l["level"] == "INFO" && l["code"] == "request_canceled", "the log says %v", l)
		check.Eventually(t, "its connection to be free", func() bool { return a.pool.Stat().AcquiredConns() == 0 })
	})

	// The answer must not end like a whole one.
	t.Run("with its database", func(t *testing.T) {
		a := a.with(t)
		res := read(a)
		defer res.Body.Close()
		check.Must(io.CopyN(io.Discard, res.Body, 1000))(t)
		cut()
		check.Fails(io.Copy(io.Discard, res.Body))(t, "the rest of the answer", io.ErrUnexpectedEOF)
		l := logged(t, 2)
		check.That(t, l["cut"] == true && l["level"] == "ERROR" && l["error"] != nil && l["code"] == "database_unavailable", "the log says %v", l)
	})
}

// cuttable gives a pool on the same database, and what cuts all of its connections. What Postgres
// has sent before it ends one, which can be the whole tree, would still arrive.
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
