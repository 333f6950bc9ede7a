package speed

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestClient(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 50_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		switch r.URL.Path {
		case "/echo":
			w.WriteHeader(201)
			fmt.Fprintf(w, "%s %s", r.Method, body)
		case "/long":
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			_, _ = io.WriteString(w, long)
		case "/chunks":
			for i := range 3 {
				_, _ = io.WriteString(w, long[:1000*i+1])
				w.(http.Flusher).Flush()
			}
		case "/nothing":
		}
	}))
	defer server.Close()
	c, err := dial(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	// On one connection, so that an answer read wrongly spoils the next one.
	for range 2 {
		for _, test := range []struct {
			method, path, body string
			status             int
			want               string
		}{
			{"POST", "/echo", `{"a":1}`, 201, `POST {"a":1}`},
			{"GET", "/long", "", 200, long},
			{"GET", "/chunks", "", 200, long[:1] + long[:1001] + long[:2001]},
			{"GET", "/nothing", "", 200, ""},
		} {
			var body []byte
			if test.body != "" {
				body = []byte(test.body)
			}
			got, err := c.do(test.method, test.path, body, test.status)
			if err != nil || string(got) != test.want {
				t.Fatalf("%s %s: %v, %d bytes, want %d", test.method, test.path, err, len(got), len(test.want))
			}
		}
	}
	c.used = c.used.Add(-2 * idle)
	server.CloseClientConnections()
	if _, err := c.do("GET", "/nothing", nil, 200); err != nil {
		t.Errorf("after a rest: %v", err)
	}
	if _, err := c.do("GET", "/echo", nil, 200); err == nil || !strings.Contains(err.Error(), "status 201: GET") {
		t.Errorf("another status than the one that is wanted: %v", err)
	}
}
