package server

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestCompression holds which answers are compressed, and that they say the
// same then.
func TestCompression(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	var conversation struct{ ID string }
	a.must(201, &conversation, request{method: "POST", path: "/v1/conversations", body: map[string]any{"title": "Hedges"}})
	path := "/v1/conversations/" + conversation.ID
	messages := path + "/messages"
	parent := any(nil)
	for i := range 20 {
		var m struct{ ID string }
		a.must(201, &m, request{method: "POST", path: messages, body: map[string]any{"parent_id": parent, "role": []string{"user", "assistant"}[i%2], "content": strings.Repeat("Hazel & lime. ", 20)}})
		parent = m.ID
	}
	for _, c := range []struct {
		path    string
		accepts string
		zipped  bool
	}{
		{path + "/branches/active/transcript", "gzip", true},
		{path + "/branches/active/transcript", "br, gzip;q=0.5", true},
		{path + "/branches/active/transcript", "", false},
		{path + "/branches/active/transcript", "identity, gzip;q=0", false},
		{path + "/branches/active/transcript?limit=1", "gzip", false}, // it is short
		{path + "/tree", "gzip", true},                                // whose length isn't known
		{path + "/branches/active/context", "gzip", true},
		{path, "gzip", false},
		{path + "/export", "gzip", false}, // no JSON
		{path + "/branches/active/transcript?limit=0", "gzip", false},
		{"/metrics", "gzip", false},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			plain := a.send(request{method: http.MethodGet, path: c.path, header: map[string]string{"Accept-Encoding": "identity"}})
			req := a.newRequest(request{method: method, path: c.path})
			req.Header["Accept-Encoding"] = []string{c.accepts}
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			var body io.Reader = res.Body
			if got := res.Header.Get("Content-Encoding") == "gzip"; got != c.zipped && method == http.MethodGet {
				t.Errorf("%s, Accept-Encoding %q: compressed is %v", c.path, c.accepts, got)
			}
			if res.Header.Get("Content-Type") == "application/json" && res.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s: Vary is %q", c.path, res.Header["Vary"])
			}
			if method == http.MethodHead {
				res.Body.Close()
				continue
			}
			if c.zipped {
				if body, err = gzip.NewReader(body); err != nil {
					t.Fatal(err)
				}
			}
			got, err := io.ReadAll(body)
			res.Body.Close()
			if err != nil || c.path != "/metrics" && string(got) != string(plain.body) && res.StatusCode == http.StatusOK {
				t.Errorf("%s, Accept-Encoding %q: %d bytes, not %d, %v", c.path, c.accepts, len(got), len(plain.body), err)
			}
			if res.StatusCode != plain.StatusCode {
				t.Errorf("%s: %d and not %d", c.path, res.StatusCode, plain.StatusCode)
			}
		}
	}
}

// BenchmarkCompression reads a page of 50 messages by turns as it is and
// compressed, and compares the medians. It tells the bytes that are sent.
func BenchmarkCompression(b *testing.B) {
	a := newAPI(b)
	id := uuid.New()
	line(b, a.store, id, 50)
	path := "/v1/conversations/" + id.String() + "/branches/active/transcript"
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	size := map[string]int64{}
	read := func(accepts string) time.Duration {
		start := time.Now()
		req := a.newRequest(request{method: "GET", path: path, header: map[string]string{"Accept-Encoding": accepts}})
		res, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		if size[accepts], err = io.Copy(io.Discard, res.Body); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	var zipped, plain []time.Duration
	for b.Loop() {
		zipped = append(zipped, read("gzip"))
		plain = append(plain, read("identity"))
	}
	report(b, zipped, plain, "gzip", "plain")
	b.ReportMetric(float64(size["gzip"]), "gzip-B")
	b.ReportMetric(float64(size["identity"]), "plain-B")
}
