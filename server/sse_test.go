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

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
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

// TestReaderThatStandsStill holds up neither the model nor other readers, is
// cut off, and can read on.
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
	if end := other.toEnd(); end.name != "reply.completed" || other.text != text {
		t.Fatalf("%s after %d bytes", end.name, len(other.text))
	}
	check.Eventually(t, "the end of the one that stands still", func() bool {
		for _, line := range impatient.lines() {
			if line["cut"] == true && line["code"] == "request_canceled" && line["route"] == "/v1/conversations/{conversation_id}/replies/{message_id}/events" {
				return true
			}
		}
		return false
	})
	got, err := io.ReadAll(stuck)
	if err == nil && bytes.Contains(got, []byte("reply.completed")) {
		t.Errorf("it got all %d bytes", len(got))
	}
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
	if end := l.toEnd(); end.name != "reply.completed" || l.text != "Yes." {
		t.Errorf("%+v, %q", end, l.text)
	}
}

// TestEventsReachTheirReader holds that whatever an event says, a reader gets it.
func TestEventsReachTheirReader(t *testing.T) {
	t.Parallel()
	plain := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace
	for _, text := range []string{"", "a", "a\nb", "\r", "\r\n\r\n", "a\u2028b\u2029c\u0085", "data: x\n\nid: 5\nevent: evil\n\n", "\x00\ufeff", "é🌳<&>\"\\", ": ", "\n:\n"} {
		event := appendEvent(nil, 12, "reply.delta", []byte(text))
		e, err := readEvent(bufio.NewReader(bytes.NewReader(event)))
		if want := (serverEvent{"12", "reply.delta", plain(text)}); err != nil || e != want || bytes.ContainsRune(event, '\r') {
			t.Errorf("%+v, %v, want %+v", e, err, want)
		}
		name, data, err := eventOf(reply.Event{ID: 3, Delta: &reply.Delta{Content: text, ToolCalls: []json.RawMessage{[]byte("{\r\n \"index\" :\n0}")}}})
		check.NoError(t, err)
		e = check.Must(readEvent(bufio.NewReader(bytes.NewReader(appendEvent(nil, 3, name, data)))))(t)
		var got struct{ Content string }
		if err := json.Unmarshal([]byte(e.data), &got); err != nil || got.Content != text {
			t.Errorf("%q, %v, want %q", got.Content, err, text)
		}
	}
}
