package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
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
		c.cfg.Store, c.cfg.Keys, c.cfg.Registry = emptyStore, keyring(nil), prometheus.NewRegistry()
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

// HEAD is answered where GET is.
func TestMethods(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	for _, path := range []string{"/v1/conversations", conversationPathOf + "/tree", conversationPathOf + "/branches/active/context", conversationPathOf + "/export", "/healthz", "/docs"} {
		r := get(path)
		kind := a.must(200, nil, r).Header.Get("Content-Type")
		r.method = http.MethodHead
		head := a.must(200, nil, r)
		check.Equal(t, "HEAD of "+path, string(head.body)+head.Header.Get("Content-Type"), kind)
	}
	path := fill(conversationPathOf)
	res := a.must(204, nil, request{method: http.MethodOptions, path: path})
	for _, r := range []response{res, a.must(405, nil, request{method: http.MethodPut, path: path, body: `{}`})} {
		check.Has(t, fmt.Sprintf("%d: Allow", r.StatusCode), r.Header.Get("Allow"), "GET", "HEAD", "PATCH", "DELETE", "OPTIONS")
	}
	a.must(404, nil, request{method: http.MethodOptions, path: "/nowhere"})
	a.must(404, nil, request{method: http.MethodHead, path: "/nowhere"})
}

const somePage = "/c/01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa/01979b2e-8f2b-7cc1-93a6-21e0b1c3f0ab"

func TestPageIsServed(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	page := a.must(200, nil, request{method: "GET", path: "/"})
	_, rest, _ := strings.Cut(string(page.body), `src="/assets/`)
	name, _, _ := strings.Cut(rest, `"`)
	check.Has(t, "how long the script is kept", a.must(200, nil, request{method: "GET", path: "/assets/" + name}).Header.Get("Cache-Control"), "immutable")
	a.refused(405, CodeMethodNotAllowed, request{method: "POST", path: "/", body: `{}`})

	// Links that others make have parameters of theirs.
	for _, path := range []string{"/?utm_source=letter", somePage + "?from=mail", "/assets/" + name + "?v=2"} {
		a.must(200, nil, request{method: "GET", path: path})
	}
	a.refused(404, CodeRouteNotFound, request{method: "GET", path: "/assets/none.js?v=2"})

	// It needs no key: it asks its reader for one.
	check.Must3(a.keys.Create(t.Context(), "acme", ""))(t)
	a.must(200, nil, request{method: "GET", path: somePage})
}

// A browser gets the page where nothing is, and a program is told so as JSON.
func TestLostAddresses(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	browser := map[string]string{"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
	// A link to it may stand anywhere, as one to the page may.
	link := map[string]string{"Accept": "text/html", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
	for _, path := range []string{"/nowhere", "/nowhere/at/all?from=mail", "/c", "/c/x/y/z", "/shared", "/index.html", "//", "/v10/x"} {
		for _, r := range []request{{method: "GET", header: browser}, {method: "HEAD", header: browser}, {method: "GET", header: link}} {
			r.path = path
			res := check.Must(http.DefaultTransport.RoundTrip(a.newRequest(r)))(t)
			res.Body.Close()
			if res.StatusCode != 404 || res.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(res.Header.Get("Content-Security-Policy"), "script-src 'self'") || res.Header.Get("ETag") != "" {
				t.Errorf("%s %s: %d %v", r.method, path, res.StatusCode, res.Header)
			}
		}
		a.refused(404, CodeRouteNotFound, request{method: "GET", path: path})
		a.refused(404, CodeRouteNotFound, request{method: "GET", path: path, header: map[string]string{"Accept": "*/*"}})
	}
	for _, path := range []string{"/v1", "/v1/", "/v1/nowhere", "/assets", "/assets/none.js"} {
		a.refused(404, CodeRouteNotFound, request{method: "GET", path: path, header: browser})
	}
	// A client may name its host alone.
	res := httptest.NewRecorder()
	a.server.ServeHTTP(res, &http.Request{Method: "GET", URL: &url.URL{}, Host: "127.0.0.1", Header: http.Header{"Accept": {"text/html"}}, RemoteAddr: "127.0.0.1:1", Body: http.NoBody})
	check.Equal(t, "no path", res.Code, 404)
	a.refused(404, CodeRouteNotFound, request{method: "POST", path: "/nowhere", header: browser})
	a.refused(403, CodeForbiddenHost, request{method: "GET", path: "/nowhere", header: browser, host: "evil.example"})
}

func TestOnlyThePageOpensFromElsewhere(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	fetch := func(site, mode, dest, origin string) map[string]string {
		return map[string]string{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest, "Sec-Fetch-User": "?1", "Origin": origin}
	}
	link := fetch("cross-site", "navigate", "document", "")
	for _, path := range []string{"/", somePage, "/docs"} {
		a.must(200, nil, request{method: "GET", path: path, header: link})
		a.must(200, nil, request{method: "GET", path: path, header: fetch("same-site", "navigate", "document", "")})
		for _, header := range []map[string]string{
			fetch("cross-site", "navigate", "iframe", ""),
			fetch("cross-site", "cors", "empty", "https://evil.example"),
			fetch("cross-site", "no-cors", "script", ""),
			{"Sec-Fetch-Site": "cross-site"},
		} {
			a.refused(403, CodeCrossOrigin, request{method: "GET", path: path, header: header})
		}
		a.refused(403, CodeForbiddenHost, request{method: "GET", path: path, header: link, host: "evil.example"})
	}
	for _, path := range []string{"/v1/conversations", "/openapi.yaml", "/metrics", "/assets/x.js", "/nowhere"} {
		a.refused(403, CodeCrossOrigin, request{method: "GET", path: path, header: link})
	}
}
