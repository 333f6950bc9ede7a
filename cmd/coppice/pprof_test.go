package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// Profiles and metrics are where one asks for them, and not at the server's own address;
// profiles are for this machine alone. A collector of traces that is away costs a server
// its spans and nothing else.
func TestPprof(t *testing.T) {
	t.Parallel()
	const key = "sk-zebra"
	s := serve(t, []string{"DATABASE_URL=" + dbtest.URL(t), "COPPICE_PPROF_ADDR=localhost:0",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_BSP_SCHEDULE_DELAY=20"}, "--openai-api-key", key, "--metrics-addr", "127.0.0.1:0")
	where := func(what string) string {
		at := regexp.MustCompile(`"serving ` + what + `","url":"([^"]+)"`).FindStringSubmatch(s.logged())
		if len(at) == 0 {
			t.Fatalf("no address of the %s:\n%s", what, s.logged())
		}
		return at[1]
	}
	url := where("profiles")
	if _, text, err := try(t.Context(), http.MethodGet, where("metrics"), nil); !bytes.Contains(text, []byte("coppice_build_info")) {
		t.Errorf("%v: %.200s", err, text)
	}
	for path, want := range map[string]int{
		"": 200, "goroutine?debug=1": 200, "heap": 200, "trace?seconds=0.1": 200,
		"cmdline": 404, // it would show keys
	} {
		status, body, err := try(t.Context(), http.MethodGet, url+path, nil)
		check.That(t, err == nil && status == want && len(body) != 0 && !strings.Contains(string(body), key),
			"%s: status %d, %d bytes, %v", path, status, len(body), err)
	}
	for path, base := range map[string]string{"/debug/pprof/": s.url, "/metrics": s.url, "/v1/conversations": strings.TrimSuffix(url, "/debug/pprof/")} {
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
	mustTalk(t, s.url, newTalk(t, s.url), 2)
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 || !strings.Contains(s.logged(), "traces could not be sent") {
		t.Errorf("exit code %d, or nothing said of the collector", code)
	}
	r := runProgram(t, []string{"OTEL_TRACES_EXPORTER=zipkin"}, nil, "serve", "--addr", "127.0.0.1:0")
	check.That(t, r.code == exitUsage && strings.Contains(r.stderr, "give otlp, or none"),
		"exit code %d\n%s", r.code, r.stderr)
}
