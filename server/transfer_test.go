package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// A summary that an import brings is marked wherever it is shown, and can be
// left out: by the request, or by the server whatever the request says.
func TestImportedSummaries(t *testing.T) {
	t.Parallel()
	from := newAPI(t)
	plantLong(t, from.store, "c", 20)
	path := fill(conversationPathOf)
	var made compactionAnswer
	from.must(201, &made, request{method: "POST", path: path + "/branches/active/compactions"})
	file := string(from.must(200, nil, request{method: "GET", path: path + "/export"}).body)
	put := func(query string) request {
		return request{method: "POST", path: "/v1/imports" + query, body: file, header: octets}
	}
	keeps := newAPI(t)
	var report importReport
	keeps.must(200, &report, put("?dry_run=true&summaries=drop"))
	check.Equal(t, "dropped by the request", fmt.Sprint(report.Summaries, report.Dropped), "0 1")
	keeps.must(200, nil, put("?summaries=keep"))
	for _, at := range []string{"/branches/active/context", "/branches/active/explain", "/summaries/" + *made.SummaryID, "/tree"} {
		check.Has(t, at, string(keeps.must(200, nil, request{method: "GET", path: path + at}).body), `"origin":{"imported_at":"`, `"format":"coppice"`)
	}
	for name, a := range map[string]*testAPI{"as it was written here": from, "as it came with the file": keeps} {
		var link struct{ Token string }
		a.must(201, &link, request{method: "POST", path: path + "/branches/active/shares", body: `{"summaries":true}`})
		var opened struct{ Summary *struct{ Imported bool } }
		a.must(200, &opened, request{method: "GET", path: "/v1/shared/" + link.Token})
		check.That(t, opened.Summary != nil && opened.Summary.Imported == (a == keeps), "%s, a link shows the summary %+v", name, opened.Summary)
	}

	drops := newAPI(t, func(c *Config) { c.DropImportedSummaries = true })
	before := drops.state()
	drops.refused(400, CodeInvalidParameter, put("?summaries=keep"))
	check.Equal(t, "what is stored", drops.state(), before)
	drops.must(200, &report, put(""))
	check.Equal(t, "dropped by the server", fmt.Sprint(report.Summaries, report.Dropped), "0 1")
	keeps.refused(400, CodeInvalidParameter, put("?summaries=maybe"))
}

// A file is taken under each content type that a client says of an export.
func TestImportTakesTheTypesOfFiles(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.MaxImportBytes = 1000 })
	before := a.state()
	a.refused(413, CodeBodyTooLarge, request{method: "POST", path: "/v1/imports", header: octets,
		body: `[{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}]`})
	check.Equal(t, "what is stored", a.state(), before)
	for _, kind := range append([]string{"application/json; charset=utf-8", "text/plain"}, importTypes...) {
		if strings.HasSuffix(kind, "/") {
			continue
		}
		a.must(200, nil, request{method: "POST", path: "/v1/imports?dry_run=true", header: map[string]string{"Content-Type": kind}, body: `[{"role":"user","content":"hi"}]`})
	}
}

// An import whose file has come ends in time though what it waits for doesn't come.
func TestImportEndsAfterItsFile(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.RequestTimeout = time.Second })
	file := fill(`{"type":"conversation","version":1,"id":"{{c}}","title":"","metadata":{},"settings":{},"head_id":null,"created_at":"2026-01-01T00:00:00Z"}`)
	put := request{method: "POST", path: "/v1/imports", header: octets, body: file}
	a.must(200, nil, put)
	tx := check.Must(a.pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(t.Context()) }()
	check.NoError(t, tree.New(tx).Lock(t.Context(), named("c")))
	check.Has(t, "the detail", a.refused(503, CodeTimeout, put).Detail, "Split the file")
}

// TestAttachmentReachesTheModel uploads a picture and a text, names both in a
// message, and looks at what the model, a context and the transcript show.
func TestAttachmentReachesTheModel(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewServer(t, llmtest.Answer("Hazel."))
	a := newAPI(t, withModels(nil, model(t, fake)))
	plant(t, a.store, "c")
	type attachment struct {
		Hash, Name string
		Part       json.RawMessage
	}
	var tree, notes attachment
	var b bytes.Buffer
	check.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 30))))
	picture := b.String()
	a.must(201, &tree, request{method: "POST", path: "/v1/attachments?name=old+tree.png", body: picture, header: octets})
	a.must(200, nil, request{method: "POST", path: "/v1/attachments", body: picture, header: octets})
	a.must(201, &notes, request{method: "POST", path: "/v1/attachments?name=notes.md", body: "# Hazel & ash", header: octets})
	content := fmt.Sprintf(`[{"type":"text","text":"Which tree?"},%s,%s]`, tree.Part, notes.Part)
	a.must(200, nil, request{method: "POST", path: fill(replyPathOf), body: `{"stream":true,"message":{"role":"user","content":` + content + `}}`})
	data := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(picture))
	all := fake.Requests()
	sent := string(all[len(all)-1].Body)
	check.Has(t, "the model gets", sent, data, `"[file notes.md]\n# Hazel & ash"`, `"Which tree?"`)
	check.Lacks(t, "the model gets", sent, "coppice:attachment")
	context := func(query string) string {
		return string(a.must(200, nil, request{method: "GET", path: fill(conversationPathOf + "/branches/active/context" + query)}).body)
	}
	check.Has(t, "the context", context(""), data)
	check.Has(t, "the context with names", context("?attachments=names"), content)
	a.tells(200, request{method: "GET", path: fill(conversationPathOf + "/branches/active/transcript")}, content)
	res := a.must(200, nil, request{method: "GET", path: "/v1/attachments/" + tree.Hash})
	if string(res.body) != picture || res.Header.Get("Content-Disposition") != `inline; filename="old tree.png"` || res.Header.Get("Content-Type") != "image/png" {
		t.Errorf("%d bytes come back, %v", len(res.body), res.Header)
	}
	a.must(304, nil, request{method: "GET", path: "/v1/attachments/" + tree.Hash, header: map[string]string{"If-None-Match": res.Header.Get("ETag")}})
}

// What a browser would run comes back as what it won't.
func TestAttachmentsNeverRun(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, evil := range []string{
		"<!doctype html><script>alert(1)</script>", `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`,
	} {
		var made struct {
			Hash      string
			MediaType string `json:"media_type"`
		}
		a.must(201, &made, request{method: "POST", path: "/v1/attachments?name=..%2F..%2Fa%22%3BX=y.html", body: evil, header: map[string]string{"Content-Type": "text/html"}})
		res := a.must(200, nil, request{method: "GET", path: "/v1/attachments/" + made.Hash})
		h := res.Header
		if string(res.body) != evil || h.Get("Content-Type") != "text/plain; charset=utf-8" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment;") ||
			h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || strings.Contains(h.Get("Content-Disposition"), "..") || h.Get("X") != "" {
			t.Errorf("%q comes back as %v", evil, h)
		}
	}
}

// A file takes memory as it comes, and no more than it may.
func TestReadFileIsBounded(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	most := a.store.Attachments().Most()
	for _, size := range []string{"a length that is too large", "no length"} {
		req := a.newRequest(request{method: "POST", path: "/v1/attachments", header: octets, body: "x"})
		req.ContentLength, req.Body = int64(most)+1, io.NopCloser(iotest.ErrReader(errors.New("nobody reads this")))
		if size == "no length" {
			req.ContentLength, req.Body = -1, io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, most)), strings.NewReader("x")))
		}
		_, err := createAttachment(&Request{Request: req, server: a.server, who: access.Principal{Tenant: "default"}})
		check.Has(t, size, fmt.Sprint(err), "The file has over")
	}
}

// A body takes memory as it comes, whatever length its client says.
func TestReadSized(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, firstRead - 1, firstRead, firstRead + 1, 5*firstRead + 7, 32 << 20} {
		want := bytes.Repeat([]byte("0123456"), size/7+1)[:size]
		got, err := readSized(iotest.HalfReader(bytes.NewReader(want)), size)
		if err != nil || !bytes.Equal(got, want) || cap(got) > max(size, firstRead) {
			t.Errorf("%d bytes: %d came, in memory for %d, %v", size, len(got), cap(got), err)
		}
	}
	for _, sent := range []int{0, 10, firstRead, firstRead + 1} {
		got, err := readSized(strings.NewReader(strings.Repeat("x", sent)), 32<<20)
		if !errors.Is(err, io.ErrUnexpectedEOF) || cap(got) > 5*firstRead {
			t.Errorf("of 32 MiB come %d bytes, in memory for %d: %v", sent, cap(got), err)
		}
	}
}
