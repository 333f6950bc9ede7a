package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/web"
)

func get(t *testing.T, path string, header map[string]string) *http.Response {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, path, nil)
	for name, value := range header {
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, req)
	return w.Result()
}

var assets = regexp.MustCompile(`"(/assets/[^"]+)"`)

// assetsOf are what a page names.
func assetsOf(t *testing.T, path string, least int) (paths []string) {
	t.Helper()
	page := check.Must(io.ReadAll(get(t, path, nil).Body))(t)
	for _, found := range assets.FindAllStringSubmatch(string(page), -1) {
		paths = append(paths, found[1])
	}
	check.Need(t, len(paths) >= least, "%s names %q", path, paths)
	return paths
}

func pageAssets(t *testing.T) []string { return assetsOf(t, "/", 4) }

// TestFirstLoad holds what a browser gets before it shows anything to 110 KB.
func TestFirstLoad(t *testing.T) {
	t.Parallel()
	total := 0
	for _, path := range append(pageAssets(t), "/") {
		if strings.Contains(path, "/demo-") || strings.Contains(path, "/math-") || strings.Contains(path, "/diagrams-") || strings.Contains(path, "/preview-") {
			continue // asked for when they are needed
		}
		body := check.Must(io.ReadAll(get(t, path, map[string]string{"Accept-Encoding": "gzip"}).Body))(t)
		total += len(body)
	}
	check.That(t, total <= 110_000 && total >= 50_000, "the first load is %d bytes", total)
}

func TestHandler(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/c/01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa", "/c/01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa/01979b2e-8f2b-7cc1-93a6-21e0b1c3f0ab"} {
		res := get(t, path, nil)
		if res.StatusCode != 200 || res.Header.Get("Content-Security-Policy") != web.Policy || res.Header.Get("Cache-Control") != "no-cache" ||
			res.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
		}
	}
	if res := get(t, web.Docs, nil); res.StatusCode != 200 || res.Header.Get("Content-Security-Policy") != web.DocsPolicy ||
		res.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%s: %d %v", web.Docs, res.StatusCode, res.Header)
	}
	for _, path := range append(pageAssets(t), assetsOf(t, web.Docs, 3)...) {
		res := get(t, path, nil)
		if res.StatusCode != 200 || !strings.Contains(res.Header.Get("Cache-Control"), "immutable") || !web.Has(path) {
			t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
		}
		etag := res.Header.Get("ETag")
		if again := get(t, path, map[string]string{"If-None-Match": `"x", W/` + etag}); again.StatusCode != http.StatusNotModified || again.Header.Get("ETag") != etag {
			t.Errorf("%s again: %d %v", path, again.StatusCode, again.Header)
		}
		if older := get(t, path, map[string]string{"If-None-Match": `"x", "y"`}); older.StatusCode != 200 {
			t.Errorf("%s to somebody who has an older one: %d", path, older.StatusCode)
		}
	}
	for _, path := range []string{"/nothing", "/assets/", "/assets/../embed.go", "/assets/app.js", "/index.html", "/docs.html", "/docs/", "/assets/docs.js", "/dist/index.html", "/c", "/c/a/b/c"} {
		if res := get(t, path, nil); res.StatusCode != http.StatusNotFound || web.Has(path) {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	for _, path := range pageAssets(t) {
		res := get(t, path, nil)
		if framed := strings.Contains(path, "/diagrams-") || strings.Contains(path, "/preview-"); framed != (res.Header.Get("Content-Security-Policy") == web.FramePolicy) || framed != (res.Header.Get("X-Frame-Options") == "SAMEORIGIN") {
			t.Errorf("%s: %v", path, res.Header)
		}
	}
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	check.Equal(t, "POST", w.Code, http.StatusMethodNotAllowed)
	w = httptest.NewRecorder()
	web.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/", nil))
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "" {
		t.Errorf("HEAD: %d with %d bytes", w.Code, w.Body.Len())
	}
}

func TestCompression(t *testing.T) {
	t.Parallel()
	for _, path := range append(assetsOf(t, web.Docs, 3), "/") { // some of which are stored compressed
		testCompression(t, path)
	}
}

func testCompression(t *testing.T, path string) {
	for header, zipped := range map[string]bool{
		"gzip": true, "gzip, deflate, br": true, "br;q=1.0, gzip;q=0.5": true, "*": true,
		"": false, "br": false, "gzip;q=0": false, "identity": false, "xgzip": false,
	} {
		plain := check.Must(io.ReadAll(get(t, path, nil).Body))(t)
		res := get(t, path, map[string]string{"Accept-Encoding": header})
		body := io.Reader(res.Body)
		got := res.Header.Get("Content-Encoding") == "gzip"
		check.That(t, got == zipped, "%s, Accept-Encoding %q: compressed is %v", path, header, got)
		if zipped {
			body = check.Must(gzip.NewReader(body))(t)
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != string(plain) {
			t.Errorf("%s, Accept-Encoding %q: other content, %v", path, header, err)
		}
	}
}
