package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

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
