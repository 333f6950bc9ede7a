package server

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
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

// TestOddRequestsOnTheWire sends what no client library would. The answer is
// a refusal, or the connection ends, and the server lives on.
func TestOddRequestsOnTheWire(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	head := "Host: localhost\r\nContent-Type: application/json\r\n"
	for name, raw := range map[string]string{
		"two hosts":        "GET /v1/conversations HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
		"absolute target":  "GET http://evil.example/v1/conversations HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"dots in the path": "GET /v1/../v1/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"huge length":      "POST " + fill(appendPath) + " HTTP/1.1\r\n" + head + "Content-Length: 9223372036854775807\r\n\r\n{}",
		"endless chunks":   "POST " + fill(appendPath) + " HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("ffff\r\n"+strings.Repeat(" ", 0xffff)+"\r\n", 40),
		"chunk extensions": "POST " + fill(appendPath) + " HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("a=b;", 50_000) + "\r\n{\r\n0\r\n\r\n",
		"CONNECT":          "CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80\r\n\r\n",
		"asterisk":         "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"TRACE":            "TRACE /v1/conversations HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"pipelined":        strings.Repeat("GET /v1/nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
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
