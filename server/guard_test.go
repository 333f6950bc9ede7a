package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/web"
)

// everyRoute is one request for each kind of route, the unknown among them.
var everyRoute = []request{
	{method: "GET", path: "/v1/conversations"},
	{method: "POST", path: "/v1/conversations", body: `{}`},
	{method: "GET", path: conversationPathOf + "/tree"},
	{method: "DELETE", path: conversationPathOf},
	{method: "GET", path: "/healthz"},
	{method: "GET", path: "/readyz"},
	{method: "GET", path: "/metrics"},
	{method: "GET", path: "/openapi.yaml"},
	{method: "GET", path: "/docs"},
	{method: "GET", path: "/nowhere"},
	{method: "PUT", path: "/v1/conversations", body: `{}`},
	{method: "OPTIONS", path: "/v1/conversations"},
}

func TestForeignHostsAndOriginsAreRefusedOnEveryRoute(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	before := a.state()
	for _, r := range everyRoute {
		r.path = fill(r.path)
		for _, host := range []string{"evil.example:8787", "localhost.evil.example", "0.0.0.0:8787"} {
			r := r
			r.host = host
			a.refused(403, CodeForbiddenHost, r)
		}
		for _, header := range []map[string]string{
			{"Origin": "https://evil.example"},
			{"Origin": "null"},
			{"Origin": "http://127.0.0.1:1"},
			{"Origin": strings.Replace(a.url, "127.0.0.1", "localhost", 1)},
			{"Sec-Fetch-Site": "cross-site"},
			{"Sec-Fetch-Site": "same-site"},
			{"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
		} {
			r := r
			r.header = header
			a.refused(403, CodeCrossOrigin, r)
		}
	}
	check.Equal(t, "what is stored", a.state(), before)
	// One's own pages pass.
	for _, header := range []map[string]string{
		{"Origin": a.url},
		{"Origin": a.url, "Sec-Fetch-Site": "same-origin"},
		{"Sec-Fetch-Site": "none"}, // typed into the browser
	} {
		a.must(200, nil, request{method: "GET", path: "/v1/conversations", header: header})
	}
}

func TestKnownHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		cfg    Config
		passes []string
		fails  []string
	}{
		{"loopback", Config{Loopback: true}, []string{"localhost", "127.0.0.1", "[::1]:80", "LOCALHOST:80", "localhost.", "127.0.0.2", "[::1]", "app.localhost", "[::ffff:127.0.0.1]"}, []string{"example.org", "192.0.2.1", "", "[", ":80", "127.0.0.1.evil.example", "10.0.0.1", "[2001:db8::1]:80", "localhost@evil.example"}},
		{"loopback behind a proxy", Config{Loopback: true, AllowedHosts: []string{"Chat.example.org"}}, []string{"chat.example.org", "CHAT.example.org:443", "localhost"}, []string{"example.org", "192.0.2.1"}},
		{"a network without keys", Config{}, []string{"192.0.2.1:8787", "[2001:db8::1]", "localhost"}, []string{"example.org"}},
		{"a network with keys", Config{RequireKey: true}, []string{"example.org", "192.0.2.1"}, []string{""}},
		{"a network with keys and hosts", Config{RequireKey: true, AllowedHosts: []string{"example.org"}}, []string{"example.org", "192.0.2.1"}, []string{"example.com"}},
		{"any host", Config{AllowedHosts: []string{"*"}}, []string{"example.org", "x"}, []string{""}},
		{"an address as a host", Config{Loopback: true, AllowedHosts: []string{"[2001:db8::1]"}}, []string{"[2001:db8::1]:8787"}, []string{"[2001:db8::2]:8787"}},
	} {
		c.cfg.Store, c.cfg.Keys, c.cfg.Registry = emptyStore, noKeys{}, prometheus.NewRegistry()
		s := check.Must(New(c.cfg))(t)
		for _, host := range c.passes {
			check.Equal(t, c.name+": "+host, s.knownHost(host), true)
		}
		for _, host := range c.fails {
			check.Equal(t, c.name+": "+host, s.knownHost(host), false)
		}
	}
}

func TestAllowedOriginMayReadAnswers(t *testing.T) {
	t.Parallel()
	const origin = "https://chat.example.org"
	a := newAPI(t, func(c *Config) { c.AllowedOrigins = []string{origin} })
	from := map[string]string{"Origin": origin, "Sec-Fetch-Site": "cross-site"}
	res := a.must(201, nil, request{method: "POST", path: "/v1/conversations", header: from})
	check.Equal(t, "Access-Control-Allow-Origin", res.Header.Get("Access-Control-Allow-Origin"), origin)
	preflight := request{method: "OPTIONS", path: "/v1/conversations", header: map[string]string{
		"Origin": origin, "Sec-Fetch-Site": "cross-site",
		"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,idempotency-key,x-stainless-lang, X-Coppice-Record,x-evil",
	}}
	res = a.must(204, nil, preflight)
	allowed := res.Header.Get("Access-Control-Allow-Headers")
	if !strings.Contains(allowed, "Idempotency-Key") || !strings.HasSuffix(allowed, ", x-stainless-lang, x-coppice-record") || !strings.Contains(res.Header.Get("Access-Control-Allow-Methods"), "PATCH") {
		t.Errorf("preflight answered %v", res.Header)
	}
	// With keys, too: a browser asks without one.
	check.Must3(a.keys.Create(t.Context(), "acme", ""))(t)
	a.must(204, nil, preflight)
	for _, other := range []string{"https://chat.example.org.evil.example", "http://chat.example.org", "https://chat.example.org:444"} {
		preflight.header["Origin"] = other
		res := a.must(403, nil, preflight)
		check.Equal(t, other+" got Access-Control-Allow-Origin", res.Header.Get("Access-Control-Allow-Origin"), "")
	}
}

func TestSecurityHeadersStandOnEveryAnswer(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, r := range everyRoute {
		r.path = fill(r.path)
		res := a.send(r)
		caching := "no-store"
		if r.path == web.Docs { // which holds nothing that was said, and may be kept until it changes
			caching = "no-cache"
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": caching,
		} {
			check.Equal(t, fmt.Sprintf("%s %s: %s", r.method, r.path, name), res.Header.Get(name), want)
		}
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	path := fill(conversationPathOf)
	res := a.must(204, nil, request{method: http.MethodOptions, path: path})
	for _, r := range []response{res, a.must(405, nil, request{method: http.MethodPut, path: path, body: `{}`})} {
		check.Has(t, fmt.Sprintf("%d: Allow", r.StatusCode), r.Header.Get("Allow"), "GET", "HEAD", "PATCH", "DELETE", "OPTIONS")
	}
	a.must(404, nil, request{method: http.MethodOptions, path: "/nowhere"})
	a.must(404, nil, request{method: http.MethodHead, path: "/nowhere"})
}
