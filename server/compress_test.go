package server

import (
	"compress/gzip"
	"io"
	"net/http"
	"testing"
)

// TestCompression holds which answers are compressed, and that they say the
// same then.
func TestCompression(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plantLong(t, a.store, "c", 20)
	path := fill(conversationPathOf)
	for _, c := range []struct {
		path, accepts string
		zipped        bool
	}{
		{"/branches/active/transcript", "gzip", true},
		{"/branches/active/transcript", "br, gzip;q=0.5", true},
		{"/branches/active/transcript", "", false},
		{"/branches/active/transcript", "identity, gzip;q=0", false},
		{"/branches/active/transcript?limit=1", "gzip", false}, // it is short
		{"/tree", "gzip", true},                                // whose length isn't known
		{"/export", "gzip", false},                             // no JSON
		{"/branches/active/transcript?limit=0", "gzip", false},
	} {
		plain := a.send(request{method: "GET", path: path + c.path, header: map[string]string{"Accept-Encoding": "identity"}})
		req := a.newRequest(request{method: "GET", path: path + c.path})
		req.Header["Accept-Encoding"] = []string{c.accepts}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if got := res.Header.Get("Content-Encoding") == "gzip"; got != c.zipped {
			t.Fatalf("%s, Accept-Encoding %q: compressed is %v", c.path, c.accepts, got)
		}
		if res.Header.Get("Content-Type") == "application/json" && res.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: Vary is %q", c.path, res.Header["Vary"])
		}
		var body io.Reader = res.Body
		if c.zipped {
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		got, err := io.ReadAll(body)
		if err != nil || string(got) != string(plain.body) || res.StatusCode != plain.StatusCode {
			t.Errorf("%s, Accept-Encoding %q: %d, %d bytes, not %d, %v", c.path, c.accepts, res.StatusCode, len(got), len(plain.body), err)
		}
	}
}
