package server

import (
	"strings"
	"testing"
)

const somePage = "/c/01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa/01979b2e-8f2b-7cc1-93a6-21e0b1c3f0ab"

func TestPageIsServed(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, path := range []string{"/", "/c/01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa", somePage} {
		for _, method := range []string{"GET", "HEAD"} {
			res := a.must(200, nil, request{method: method, path: path})
			if !strings.Contains(res.Header.Get("Content-Security-Policy"), "script-src 'self'") || res.Header.Get("X-Frame-Options") != "DENY" ||
				res.Header.Get("Content-Type") != "text/html; charset=utf-8" {
				t.Errorf("%s %s: %v", method, path, res.Header)
			}
		}
	}
	page := a.must(200, nil, request{method: "GET", path: "/"})
	_, rest, _ := strings.Cut(string(page.body), `src="/assets/`)
	name, _, _ := strings.Cut(rest, `"`)
	res := a.must(200, nil, request{method: "GET", path: "/assets/" + name})
	if !strings.Contains(res.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("the script: %v", res.Header)
	}
	for _, path := range []string{"/assets/none.js", "/c", "/c/x/y/z", "/index.html"} {
		a.refused(404, CodeRouteNotFound, request{method: "GET", path: path})
	}
	a.refused(405, CodeMethodNotAllowed, request{method: "POST", path: "/", body: `{}`})

	// Links that others make have parameters of theirs.
	for _, path := range []string{"/?utm_source=letter", somePage + "?from=mail", "/assets/" + name + "?v=2"} {
		a.must(200, nil, request{method: "GET", path: path})
	}
	a.refused(404, CodeRouteNotFound, request{method: "GET", path: "/assets/none.js?v=2"})

	// It needs no key: it asks its reader for one.
	if _, _, err := a.keys.Create(t.Context(), "acme", ""); err != nil {
		t.Fatal(err)
	}
	a.must(200, nil, request{method: "GET", path: somePage})
}

func TestOnlyThePageOpensFromElsewhere(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	with := func(header map[string]string, changes ...string) map[string]string {
		out := map[string]string{}
		for name, value := range header {
			out[name] = value
		}
		for i := 0; i < len(changes); i += 2 {
			out[changes[i]] = changes[i+1]
		}
		return out
	}
	link := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-User": "?1"}
	for _, path := range []string{"/", somePage, "/docs"} {
		a.must(200, nil, request{method: "GET", path: path, header: link})
		a.must(200, nil, request{method: "GET", path: path, header: with(link, "Sec-Fetch-Site", "same-site")})
		for _, header := range []map[string]string{
			with(link, "Sec-Fetch-Dest", "iframe"),
			with(link, "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Origin", "https://evil.example"),
			with(link, "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"),
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
