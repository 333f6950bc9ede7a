// Package web is Coppice's web page: a chat with branches, a map of the tree,
// and a view of what the model sees. The page uses nothing but the REST API.
// Package web also has the API reference, which is Swagger UI over the server's
// openapi.yaml.
//
// The page is written in TypeScript (src) and built by `npm ci && npm run
// build` into dist. dist is committed and embedded, so that building the
// program takes Go alone. This package serves these files and no data: the page
// asks the API for data, like any other client.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed dist
var dist embed.FS

// Policy is the content security policy of the page. Scripts, styles and
// requests are the server's own, and the page loads nothing from elsewhere.
// Text of a conversation can't run, even if it passed the sanitizer. With
// trusted types, only the sanitizer puts text into the page as HTML.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; img-src 'self' data: blob:; frame-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify"

// DocsPolicy is the content security policy of the API reference. It has no
// trusted types, because Swagger UI has none. Images may be data, because the
// style sheet of Swagger UI holds its arrows as data.
const DocsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// FramePolicy is the content security policy of the frames that draw diagrams and
// preview HTML. Both make styles and markup out of a message's text. So a frame has
// an origin of its own and no network, and nobody but the page may show it. The own
// meta element of the frame of diagrams allows its one script, by its hash, and
// nothing else.
const FramePolicy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"

// Docs is the path of the API reference. It renders /openapi.yaml.
const Docs = "/docs"

// Pages are the paths of the page, in net/http's patterns. The page is the same
// at each path, and reads the conversation and the head from its address.
var Pages = []string{"/", "/c/{conversation}", "/c/{conversation}/{head}", "/shared/{token}"}

// Assets is the pattern of the paths of the page's files.
const Assets = "/assets/{name}"

// A file is one of dist, ready to be sent.
type file struct {
	content, gzipped []byte        // gzipped is nil where it isn't smaller, content where dist has it compressed
	unpacked         func() []byte // content where that is nil: all requests share it
	contentType      string
	etag             string
	cacheControl     string
	policy           string
	framed           bool // the page shows it in a frame
}

// servedAt are the paths of files that are not served at their own.
var servedAt = map[string]string{"/index.html": "/", "/docs.html": Docs}

// files are those of dist by the path they are served at; the page has "/".
// name.gz is served as name.
var files = sync.OnceValue(func() map[string]file {
	out := make(map[string]file)
	err := fs.WalkDir(dist, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		served, zipped := strings.CutSuffix(strings.TrimPrefix(name, "dist"), ".gz")
		if path, ok := servedAt[served]; ok {
			served = path
		}
		out[served] = newFile(served, content, zipped)
		return nil
	})
	if err != nil {
		panic(fmt.Sprintf("web: reading the embedded files: %v", err)) // they are in the program
	}
	return out
})

func newFile(served string, content []byte, zipped bool) file {
	sum := sha256.Sum256(content)
	f := file{
		etag: `"` + hex.EncodeToString(sum[:16]) + `"`, policy: Policy,
		contentType: mime.TypeByExtension(path.Ext(served)),
		// Their names hold a digest of their content.
		cacheControl: "public, max-age=31536000, immutable",
	}
	if zipped {
		f.gzipped, f.unpacked = content, sync.OnceValue(func() []byte { return decompress(content) })
	} else {
		f.content, f.gzipped = content, compress(content)
	}
	switch {
	case served == Docs:
		f.policy = DocsPolicy
	case path.Ext(served) == ".html":
		f.policy, f.framed = FramePolicy, true
	}
	switch {
	case path.Ext(served) == "": // a page
		f.contentType, f.cacheControl = "text/html; charset=utf-8", "no-cache"
	case path.Ext(served) == ".js": // systems differ in what they think it is
		f.contentType = "text/javascript; charset=utf-8"
	case path.Ext(served) == ".woff2":
		f.contentType = "font/woff2"
	}
	return f
}

// compress gives content as gzip, or nil where that saves nothing.
func compress(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a valid one
	_, _ = w.Write(content)                               // a Buffer takes everything
	_ = w.Close()
	if b.Len() >= len(content) {
		return nil
	}
	return b.Bytes()
}

// decompress undoes compress.
func decompress(packed []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		var content []byte
		if content, err = io.ReadAll(r); err == nil {
			return content
		}
	}
	panic(fmt.Sprintf("web: an embedded file is no gzip: %v", err)) // the build made it
}

// Handler returns a handler that serves [Pages], [Docs] and [Assets]. The files
// are read and compressed once in a process, at the first call.
func Handler() http.Handler { return handler(files()) }

// Has reports whether the Handler serves a path.
func Has(path string) bool {
	_, ok := files()[fileOf(path)]
	return ok
}

// fileOf names the file that is served at a path.
func fileOf(path string) string {
	if strings.HasPrefix(path, "/c/") && strings.Count(path, "/") <= 3 || strings.HasPrefix(path, "/shared/") && strings.Count(path, "/") == 2 {
		return "/"
	}
	return path
}

type handler map[string]file

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := h[fileOf(r.URL.Path)]
	switch {
	case !ok:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	f.serve(w, r, http.StatusOK)
}

// Lost returns a handler that serves the page with the status 404. The page says
// that nothing is at its address, and leads on.
func Lost() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { files()["/"].serve(w, r, http.StatusNotFound) })
}

func (f file) serve(w http.ResponseWriter, r *http.Request, status int) {
	header := w.Header()
	header.Set("Content-Security-Policy", f.policy)
	header.Set("Cache-Control", f.cacheControl)
	header.Set("Content-Type", f.contentType)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	if f.framed {
		header.Set("X-Frame-Options", "SAMEORIGIN")
	}
	header.Add("Vary", "Accept-Encoding")
	body, etag := f.content, f.etag
	if f.gzipped != nil && Accepts(r.Header.Get("Accept-Encoding"), "gzip") {
		body, etag = f.gzipped, strings.TrimSuffix(etag, `"`)+`-gzip"`
		header.Set("Content-Encoding", "gzip")
	}
	if status == http.StatusOK {
		header.Set("ETag", etag)
		if matches(r.Header.Get("If-None-Match"), etag) {
			header.Del("Content-Encoding")
			header.Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if body == nil { // a client that takes no gzip asks for a file that dist has compressed
		body = f.unpacked()
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that left needs no answer
	}
}

// Accepts tells whether an Accept-Encoding header names a content coding and doesn't
// refuse it. "*" stands for gzip alone, which each client knows.
func Accepts(header, coding string) bool {
	for choice := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(choice, ";")
		if name = strings.TrimSpace(name); name != coding && (name != "*" || coding != "gzip") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
		return err != nil || q > 0
	}
	return false
}

// matches tells whether an If-None-Match header names the entity tag.
func matches(header, etag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		if candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/"); candidate == etag || candidate == "*" {
			return true
		}
	}
	return false
}
