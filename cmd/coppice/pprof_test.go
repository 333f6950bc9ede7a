package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// Profiles are there only where one asks for them, and for this machine alone.
func TestPprof(t *testing.T) {
	t.Parallel()
	const key = "sk-zebra"
	s := serve(t, []string{"DATABASE_URL=" + dbtest.URL(t), "COPPICE_PPROF_ADDR=localhost:0"}, "--openai-api-key", key)
	var url string
	for line := range strings.SplitSeq(s.logged(), "\n") {
		var l struct{ Msg, URL string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "serving profiles" {
			url = l.URL
		}
	}
	if url == "" {
		t.Fatal("the log doesn't say where")
	}
	for path, want := range map[string]int{
		"": 200, "goroutine?debug=1": 200, "heap": 200, "trace?seconds=0.1": 200,
		"cmdline": 404, // it would show keys
	} {
		status, body, err := try(t.Context(), http.MethodGet, url+path, nil)
		if err != nil || status != want || len(body) == 0 || strings.Contains(string(body), key) {
			t.Errorf("%s: status %d, %d bytes, %v", path, status, len(body), err)
		}
	}
	for path, base := range map[string]string{"/debug/pprof/": s.url, "/v1/conversations": strings.TrimSuffix(url, "/debug/pprof/")} {
		if status, _, err := try(t.Context(), http.MethodGet, base+path, nil); err != nil || status != http.StatusNotFound {
			t.Errorf("%s is served by the other listener: status %d, %v", path, status, err)
		}
	}
	// Of web pages: by a name of their own that leads here, or by their reader's browser.
	for header, want := range map[string]int{
		"Host: evil.example": 403, "Host: app.localhost": 200, "Origin: null": 403, "Origin: " + s.url: 403,
		"Sec-Fetch-Site: same-site": 403, "Sec-Fetch-Site: same-origin": 200,
	} {
		req := check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
		name, value, _ := strings.Cut(header, ": ")
		if req.Header.Set(name, value); name == "Host" {
			req.Host = value
		}
		res := check.Must(http.DefaultClient.Do(req))(t)
		if res.Body.Close(); res.StatusCode != want {
			t.Errorf("%s: status %d, want %d", header, res.StatusCode, want)
		}
	}
	// A body that never comes is not waited for.
	conn := check.Must(net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/debug/pprof/")))(t)
	defer conn.Close()
	check.Must(io.WriteString(conn, "GET /debug/pprof/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"))(t)
	check.NoError(t, conn.SetReadDeadline(time.Now().Add(timeout)))
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400") {
		t.Errorf("a request with a body: %v, %q", err, answer)
	}
}
