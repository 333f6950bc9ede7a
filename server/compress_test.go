package server

import (
	"io"
	"net/http"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/coppice-chat/coppice/internal/check"
)

// Some answers are compressed, and say the same then.
func TestCompression(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plantLong(t, a.store, "c", 20)
	path := fill(conversationPathOf)
	for _, c := range []struct {
		path, accepts, from, coding string
	}{
		{"/branches/active/transcript", "gzip", "192.0.2.1", "gzip"},
		{"/branches/active/transcript", "gzip, deflate, br, zstd", "192.0.2.1", "zstd"},
		{"/branches/active/transcript", "br, gzip;q=0.5, zstd;q=0", "192.0.2.1", "gzip"},
		{"/branches/active/transcript", "*", "192.0.2.1", "gzip"},
		{"/branches/active/transcript", "", "192.0.2.1", ""},
		{"/branches/active/transcript", "identity, gzip;q=0", "192.0.2.1", ""},
		{"/branches/active/transcript", "gzip", "", ""},                  // from this machine
		{"/branches/active/transcript?limit=1", "gzip", "192.0.2.1", ""}, // it is short
		{"/tree", "gzip", "192.0.2.1", "gzip"},                           // whose length isn't known
		{"/tree", "zstd", "192.0.2.1", "zstd"},
		{"/export", "gzip", "192.0.2.1", ""}, // no JSON
		{"/branches/active/transcript?limit=0", "gzip", "192.0.2.1", ""},
	} {
		plain := a.send(request{method: "GET", path: path + c.path, header: map[string]string{"Accept-Encoding": "identity"}})
		req := a.newRequest(request{method: "GET", path: path + c.path})
		req.Header["Accept-Encoding"] = []string{c.accepts}
		if c.from != "" {
			req.Header.Set("X-Forwarded-For", c.from)
		}
		res := check.Must(http.DefaultTransport.RoundTrip(req))(t)
		defer res.Body.Close()
		got := res.Header.Get("Content-Encoding")
		check.Need(t, got == c.coding, "%s, Accept-Encoding %q, from %q: the coding is %q", c.path, c.accepts, c.from, got)
		check.That(t, res.Header.Get("Content-Type") != "application/json" || res.Header.Get("Vary") == "Accept-Encoding",
			"%s: Vary is %q", c.path, res.Header["Vary"])
		check.Equal(t, "status", res.StatusCode, plain.StatusCode)
		check.Equal(t, c.path+" for "+c.accepts, string(check.Must(io.ReadAll(unpacked(t, res)))(t)), string(plain.body))
	}
}

// unpacked is the body of an answer as it was before its compression.
func unpacked(t testing.TB, res *http.Response) (body io.Reader) {
	t.Helper()
	var err error
	switch body = res.Body; res.Header.Get("Content-Encoding") {
	case "gzip":
		body, err = gzip.NewReader(res.Body)
	case "zstd":
		body, err = zstd.NewReader(res.Body)
	}
	check.NoError(t, err)
	return body
}
