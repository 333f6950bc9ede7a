package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/tree"
)

// A keyring knows the keys in it without a database.
type keyring map[string]keys.Key

func (k keyring) Verify(_ context.Context, secret string) (keys.Key, error) {
	if key, ok := k[secret]; ok {
		return key, nil
	}
	return keys.Key{}, keys.ErrUnknown
}

func (k keyring) Made(context.Context, string) bool { return false }

func (k keyring) Known(secret string) bool { return k[secret] != keys.Key{} }

func (k keyring) Any(context.Context) (bool, error) { return len(k) > 0, nil }

// pathOf gives a path that a pattern matches.
func pathOf(pattern string) string {
	return fill(strings.NewReplacer(
		"{conversation_id}", "{{c}}", "{conversation}", "{{c}}", "{message_id}", "{{c.third}}", "{head_id}", "{{c.third}}", "{head}", "{{c.third}}",
		"{summary_id}", "{{c.summary}}", "{name}", "x.js",
	).Replace(pattern))
}

// A stall is a way in which a client says that it sends a body and doesn't send
// all of it. Then is sent letter by letter, again and again.
type stall struct{ version, framing, then string }

// dribble writes text letter by letter until the server hangs up.
func dribble(conn net.Conn, text string) {
	for {
		for i := range len(text) {
			if _, err := conn.Write([]byte{text[i]}); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

var stalls = map[string]stall{
	"no byte of it":     {"1.1", "Content-Length: 100\r\n\r\n", ""},
	"half of it":        {"1.1", "Content-Length: 100\r\n\r\n" + `{"title":"Hazel`, ""},
	"a byte at a time":  {"1.1", "Content-Length: 1000000\r\n\r\n", " "},
	"more than is read": {"1.1", "Content-Length: 100000000000\r\n\r\n", " "},
	"no chunk of it":    {"1.1", "Transfer-Encoding: chunked\r\n\r\n", ""},
	"endless chunks":    {"1.1", "Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n"},
	"when asked to":     {"1.1", "Expect: 100-continue\r\nContent-Length: 100\r\n\r\n", ""},
	"in HTTP/1.0":       {"1.0", "Content-Length: 100\r\nConnection: keep-alive\r\n\r\n", ""},
}

// send sends a request whose body stalls, and gives what comes until the server
// hangs up. It fails where the server doesn't.
func (s stall) send(t testing.TB, a *testAPI, method, path, header string) (answer string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		t.Error(err)
		return ""
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/%s\r\n%s%s", method, path, s.version, header, s.framing); err != nil {
		t.Error(err)
	}
	if s.then != "" {
		go dribble(conn, s.then)
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	all, err := io.ReadAll(conn)
	var timeout net.Error
	check.That(t, !errors.As(err, &timeout) || !timeout.Timeout(), "%s %s: the server still waits; it said %q", method, path, all)
	return string(all)
}

// TestStalledBodiesEndOnEveryRoute sends requests whose body never ends to every route, of clients
// that are refused and of others. The server hangs up on each.
func TestStalledBodiesEndOnEveryRoute(t *testing.T) {
	t.Parallel()
	const good, limited, unknown = "good", "limited", "unknown"
	ring := keyring{good: {ID: uuid.New(), TenantID: "own", Role: access.Operator}, limited: {ID: uuid.New(), TenantID: "own", Role: access.Operator}}
	a := newAPI(t, func(c *Config) {
		c.RequestTimeout, c.CompactionTimeout, c.Keys = 100*time.Millisecond, 100*time.Millisecond, ring
		c.MaxImportBytes, c.FailureLimit = 20, -1
		c.RateLimit, c.RateBurst = 1e-6, 1<<30
	}, func(c *Config) { tree.WithLimits(tree.Limits{AttachmentBytes: 20})(c.Store) })
	plant(t, a.store.ForTenant("own"), "c")
	a.server.limits.rate.byKey[ring[limited].ID] = holding{1 << 30, time.Now()}
	a.unhurried()
	authorized := func(key string) string { return "Host: localhost\r\nAuthorization: Bearer " + key + "\r\n" }
	const json = "Content-Type: application/json\r\n"
	clients := map[string]struct {
		header string
		status string // of an answer to a route below /v1; "" for any
	}{
		"without a key":         {"Host: localhost\r\n" + json, "401"},
		"with an unknown key":   {authorized(unknown) + json, "401"},
		"of a foreign host":     {"Host: evil.example\r\nAuthorization: Bearer " + good + "\r\n" + json, "403"},
		"of a foreign page":     {authorized(good) + json + "Origin: https://evil.example\r\n", "403"},
		"over its rate limit":   {authorized(limited) + json, "429"},
		"with a compressed one": {authorized(good) + json + "Content-Encoding: gzip\r\n", "415"},
		"with a form":           {authorized(good) + "Content-Type: multipart/form-data; boundary=x\r\n", ""},
		"that may":              {authorized(good) + json, ""},
	}
	waiting, n := 0, 0
	hows := slices.Sorted(maps.Keys(stalls))
	var all sync.WaitGroup
	slots := make(chan struct{}, 64)
	for at, r := range a.server.router.routes {
		if r.May.has(Streams | Waits) {
			waiting++
		}
		path := pathOf(r.Pattern)
		if r.May.has(Watches) {
			path += "?follow=false" // else it never ends
		}
		n++ // so that each client stalls in every way, at different routes
		for client, c := range clients {
			n++
			for _, how := range []string{hows[n%len(hows)], hows[(n+3)%len(hows)]} {
				slots <- struct{}{}
				all.Go(func() {
					defer func() { <-slots }()
					if t.Failed() {
						return // each takes long then
					}
					answer := stalls[how].send(t, a, at.method, path, c.header)
					if strings.HasPrefix(r.Pattern, "/v1/") && !(r.May.has(Keyless) && c.status != "403") && c.status != "" && !strings.HasPrefix(answer, "HTTP/"+stalls[how].version+" "+c.status) {
						t.Errorf("%s %s, %s, %s: want %s, got %q", at.method, r.Pattern, client, how, c.status, answer)
					}
				})
			}
		}
	}
	all.Wait()
	check.That(t, waiting >= 6, "only %d routes stream or wait: their names have changed", waiting)
	// A client may have its answer before the request's last line ran.
	check.Eventually(t, "the end of imports, reads and connections to the database", func() bool {
		return a.server.limits.imports.underWay()+a.server.limits.reads.underWay() == 0 && a.pool.Stat().AcquiredConns() == 0
	})
}

// deadlines is an answer that keeps the deadlines of its connection.
type deadlines struct {
	http.ResponseWriter
	read, write []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error { d.read = append(d.read, t); return nil }

func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = append(d.write, t); return nil }

// TestEachPieceHasTheTimeout holds that each piece of an upload or a stream moves the deadline of
// its connection, so that a client may be slow. Elsewhere the deadline is the whole's.
func TestEachPieceHasTheTimeout(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		may         May
		read, write int // deadlines of 3 pieces and of an end
	}{{Streams | Uploads, 6, 4}, {Streams, 2, 4}, {Waits, 2, 4}, {0, 2, 0}} {
		s := &Server{cfg: Config{RequestTimeout: time.Hour}}
		d := &deadlines{ResponseWriter: httptest.NewRecorder()}
		r := requestFor(s)
		r.Request = httptest.NewRequest("POST", "/", strings.NewReader("abc"))
		r.route, r.answer.ResponseWriter = newRoute(new(API), Route{May: test.may}), d
		r.boundBody(time.Hour)
		s.moveDeadlines(r)
		check.Must(io.ReadAll(iotest.OneByteReader(r.Body)))(t)
		for range 3 {
			check.Must(r.answer.ResponseWriter.Write([]byte("x")))(t)
		}
		check.That(t, len(d.read) == test.read && len(d.write) == test.write && d.read[len(d.read)-1].IsZero(),
			"%b: deadlines to read %v, to write %v", test.may, d.read, d.write)
		for _, at := range append(d.read[:len(d.read)-1], d.write[min(1, len(d.write)):]...) {
			left := time.Until(at)
			check.That(t, left >= 30*time.Minute && left <= time.Hour, "%b: a deadline in %s", test.may, left)
		}
	}
}

// TestStalledBodySaysWhy has a client that may send a body fall silent.
func TestStalledBodySaysWhy(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.RequestTimeout = 300 * time.Millisecond })
	a.unhurried()
	plant(t, a.store, "c")
	before := a.state()
	sound := `{"type":"conversation","version":1,"title":"a","metadata":{},"settings":{},"head_id":null}` + "\n"
	for path, begun := range map[string]string{
		appendPath:                   `{"parent_id":null`,
		"/v1/attachments":            `half a text`,
		"/v1/imports?format=coppice": sound,
	} {
		s := stall{"1.1", "Content-Length: 5000\r\n\r\n" + begun, ""}
		answer := s.send(t, a, "POST", fill(path), "Host: localhost\r\nContent-Type: application/json\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 400") || !strings.Contains(answer, `"incomplete_body"`) || !strings.Contains(answer, "within 300ms") {
			t.Errorf("%s: %q", path, answer)
		}
	}
	conn := a.dial()
	fmt.Fprintf(conn, "POST /v1/imports HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n%s", `[{"role":"user","content":"x"},`)
	check.NoError(t, conn.CloseWrite())
	if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), "The file ended before its time") && !strings.Contains(string(answer), "request_canceled") {
		t.Errorf("a client that leaves: %q, %v", answer, err)
	}
	check.Equal(t, "what is stored", a.state(), before)
}

// dial opens a connection to the server that holds little on its way.
func (a *testAPI) dial() *net.TCPConn {
	a.t.Helper()
	c := check.Must(net.Dial("tcp", strings.TrimPrefix(a.url, "http://")))(a.t)
	a.t.Cleanup(func() { c.Close() })
	conn := c.(*net.TCPConn)
	check.NoError(a.t, conn.SetReadBuffer(4<<10))
	return conn
}
