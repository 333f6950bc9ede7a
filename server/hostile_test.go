package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// dial opens a connection to the server that holds little on its way.
func (a *testAPI) dial() *net.TCPConn {
	a.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { c.Close() })
	conn := c.(*net.TCPConn)
	if err := conn.SetReadBuffer(4 << 10); err != nil {
		a.t.Fatal(err)
	}
	return conn
}

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

// TestSlowSenders never finish what they send. The server hangs up on each.
func TestSlowSenders(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.RequestTimeout = 300 * time.Millisecond })
	plant(t, a.store, "c")
	before := a.state()
	post := "POST " + fill(appendPath) + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	for name, test := range map[string]struct{ at, then string }{
		"the request line":  {"", "GET /"},
		"headers":           {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", "X-A: b\r\n"},
		"one header":        {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ", "b"},
		"a body":            {post + "Content-Length: 100000\r\n\r\n", `{"parent_id"`},
		"chunks":            {post + "Transfer-Encoding: chunked\r\n\r\n", "1\r\n{\r\n"},
		"a chunk's size":    {post + "Transfer-Encoding: chunked\r\n\r\n", "0"},
		"a body unasked":    {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n", "x"},
		"a body of nothing": {post + "Content-Length: 100000\r\n\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := a.with(t).dial()
			if _, err := conn.Write([]byte(test.at)); err != nil {
				t.Fatal(err)
			}
			if test.then != "" {
				go dribble(conn, test.then)
			}
			if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(conn)
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Fatalf("the server still waits; it said %q", answer)
			}
			if bytes.Contains(answer, []byte("HTTP/1.1 5")) {
				t.Errorf("it answered %q", answer)
			}
		})
	}
	t.Cleanup(func() {
		if a.pool.Stat().AcquiredConns() != 0 {
			t.Error("connections to the database are in use")
		}
		if after := a.stateIn(context.WithoutCancel(t.Context())); after != before {
			t.Error("something was stored")
		}
	})
}

// TestSlowReadersLeaveConnections has a tenant read trees and exports so slowly
// that they would hold every connection to the database. Other requests go on,
// another tenant's trees too, and the tenant's own wait and then say why not.
func TestSlowReadersLeaveConnections(t *testing.T) {
	t.Parallel()
	const conns = 8
	a := newAPIOn(t, dbtest.New(t, dbtest.MaxConns(conns)), func(c *Config) { c.MaxReads, c.RequestTimeout = conns/2, 10*time.Second }) // so long a busy machine may hold a reader up
	for _, tenant := range []string{"slow", "other"} {
		store := a.store.ForTenant(tenant)
		plant(t, store, tenant)
		chain := slices.Repeat([]tree.NewMessage{{Body: []byte(`{"role":"assistant","content":"x"}`)}}, 800)
		if _, _, err := store.AppendChain(t.Context(), named(tenant), named(tenant+".thanks"), chain); err != nil {
			t.Fatal(err)
		}
	}
	// 24 MB in all, and connections that hold little on their way.
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := a.server.HTTPServer("")
	served := make(chan error, 1)
	go func() { served <- web.Serve(smallListener{inner}) }()
	t.Cleanup(func() {
		web.Close()
		<-served
	})
	narrow := a.with(t)
	narrow.url = "http://" + inner.Addr().String()
	if _, err := a.pool.Exec(t.Context(), `update nodes set body = json_build_object('role', 'assistant', 'content', repeat('x', 30000)) where body->>'content' = 'x'`); err != nil {
		t.Fatal(err)
	}
	_, slow := a.newKey("slow")
	_, other := a.newKey("other")
	export := "/v1/conversations/" + named("slow").String() + "/export"
	for range 2 * conns {
		conn := narrow.dial()
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", export, slow)
		go func() { // so slowly that it is never cut off
			for {
				if _, err := conn.Read(make([]byte, 4<<10)); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
	}
	eventually(t, "exports that hold connections", func() bool { return a.pool.Stat().AcquiredConns() >= conns/4 })
	for range 5 {
		a.must(200, nil, request{method: "GET", path: "/v1/conversations", header: bearer(slow)})
		a.must(200, nil, request{method: "GET", path: "/v1/conversations/" + named("other").String() + "/tree", header: bearer(other)})
	}
	a.refused(429, CodeTooManyStreams, request{method: "GET", path: export, header: bearer(slow)})
	if n := a.pool.Stat().AcquiredConns(); n > conns/2 {
		t.Errorf("%d of %d connections are in use", n, conns)
	}
}

// TestOddRequestsOnTheWire sends what no client library would. The answer is
// a refusal, or the connection ends, and the server lives on.
func TestOddRequestsOnTheWire(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	head := "Host: localhost\r\nContent-Type: application/json\r\n"
	for name, raw := range map[string]string{
		"huge headers":          "GET /v1/conversations HTTP/1.1\r\nHost: localhost\r\nX-A: " + strings.Repeat("a", 200<<10) + "\r\n\r\n",
		"many headers":          "GET /v1/conversations HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X-A: b\r\n", 50_000) + "\r\n",
		"huge path":             "GET /v1/conversations/" + strings.Repeat("a", 200<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"no host":               "GET /v1/conversations HTTP/1.1\r\n\r\n",
		"two hosts":             "GET /v1/conversations HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
		"absolute target":       "GET http://evil.example/v1/conversations HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"broken escape":         "GET /v1/conversations/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"bytes in the path":     "GET /v1/conversations/\xff\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"dots in the path":      "GET /v1/../v1/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"NUL in a header":       "GET /v1/conversations HTTP/1.1\r\nHost: localhost\r\nX-A: \x00\r\n\r\n",
		"space in a name":       "GET /v1/conversations HTTP/1.1\r\nHost: localhost\r\nX A: b\r\n\r\n",
		"two lengths":           "POST " + fill(appendPath) + " HTTP/1.1\r\n" + head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
		"length and chunks":     "POST " + fill(appendPath) + " HTTP/1.1\r\n" + head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"negative length":       "POST " + fill(appendPath) + " HTTP/1.1\r\n" + head + "Content-Length: -1\r\n\r\n{}",
		"huge length":           "POST " + fill(appendPath) + " HTTP/1.1\r\n" + head + "Content-Length: 9223372036854775807\r\n\r\n{}",
		"length beyond numbers": "POST " + fill(appendPath) + " HTTP/1.1\r\n" + head + "Content-Length: 99999999999999999999\r\n\r\n{}",
		"endless chunks":        "POST " + fill(appendPath) + " HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("ffff\r\n"+strings.Repeat(" ", 0xffff)+"\r\n", 40),
		"chunk extensions":      "POST " + fill(appendPath) + " HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("a=b;", 50_000) + "\r\n{\r\n0\r\n\r\n",
		"unknown coding":        "POST " + fill(appendPath) + " HTTP/1.1\r\n" + head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"HTTP 2 preface":        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"HTTP 9":                "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
		"TLS":                   "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"a method with a NUL":   "G\x00T / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"CONNECT":               "CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80\r\n\r\n",
		"asterisk":              "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"TRACE":                 "TRACE /v1/conversations HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"bare line feeds":       "GET /v1/conversations HTTP/1.1\nHost: localhost\n\n",
		"a folded header":       "GET /v1/conversations HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n c\r\n\r\n",
		"pipelined":             strings.Repeat("GET /v1/nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := a.with(t).dial()
			go func() {
				_, _ = io.WriteString(conn, raw) // the server may hang up amid it
				_ = conn.CloseWrite()
			}()
			_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
			in := bufio.NewReader(conn)
			for {
				res, err := http.ReadResponse(in, nil)
				if err != nil { // it hung up
					break
				}
				body, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented && res.StatusCode != http.StatusHTTPVersionNotSupported {
					t.Errorf("%d: %s", res.StatusCode, body)
				}
				if res.StatusCode == 200 && bytes.Contains(body, []byte("root:")) {
					t.Errorf("%s", body)
				}
			}
		})
	}
	t.Cleanup(func() {
		if strings.Contains(a.log.String(), "panic") {
			t.Errorf("something panicked: %s", a.log)
		}
	})
}
