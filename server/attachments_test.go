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
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/coppice-chat/coppice/attach"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

func pngOf(t testing.TB, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.String()
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
	picture := pngOf(t, 40, 30)
	a.must(201, &tree, request{method: "POST", path: "/v1/attachments?name=old+tree.png", body: picture, header: octets})
	a.must(200, nil, request{method: "POST", path: "/v1/attachments", body: picture, header: octets})
	a.must(201, &notes, request{method: "POST", path: "/v1/attachments?name=notes.md", body: "# Hazel & ash", header: octets})
	content := fmt.Sprintf(`[{"type":"text","text":"Which tree?"},%s,%s]`, tree.Part, notes.Part)
	a.must(200, nil, request{method: "POST", path: fill(replyPathOf), body: `{"stream":true,"message":{"role":"user","content":` + content + `}}`})
	data := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(picture))
	all := fake.Requests()
	sent := string(all[len(all)-1].Body)
	for _, want := range []string{data, `"[file notes.md]\n# Hazel & ash"`, `"Which tree?"`} {
		if !strings.Contains(sent, want) {
			t.Errorf("the model doesn't get %.60s: %.2000s", want, sent)
		}
	}
	if strings.Contains(sent, "coppice:attachment") {
		t.Errorf("the model gets an address of the server's own: %.2000s", sent)
	}
	context := func(query string) string {
		return string(a.must(200, nil, request{method: "GET", path: fill(conversationPathOf + "/branches/active/context" + query)}).body)
	}
	if c := context(""); !strings.Contains(c, data) {
		t.Errorf("the context is %.2000s", c)
	}
	if c := context("?attachments=names"); !strings.Contains(c, content) {
		t.Errorf("the context with names is %.2000s", c)
	}
	if told := a.must(200, nil, request{method: "GET", path: fill(conversationPathOf + "/branches/active/transcript")}); !strings.Contains(string(told.body), content) {
		t.Errorf("the transcript is %.2000s", told.body)
	}
	res := a.must(200, nil, request{method: "GET", path: "/v1/attachments/" + tree.Hash})
	if string(res.body) != picture || res.Header.Get("Content-Disposition") != `inline; filename="old tree.png"` || res.Header.Get("Content-Type") != "image/png" {
		t.Errorf("%d bytes come back, %v", len(res.body), res.Header)
	}
	a.must(304, nil, request{method: "GET", path: "/v1/attachments/" + tree.Hash, header: map[string]string{"If-None-Match": res.Header.Get("ETag")}})
}

// TestExportBringsAttachments exports over REST what names a file, and imports it
// elsewhere, first without the file.
func TestExportBringsAttachments(t *testing.T) {
	t.Parallel()
	from, to := newAPI(t), newAPI(t)
	plant(t, from.store, "c")
	var made struct{ Part json.RawMessage }
	from.must(201, &made, request{method: "POST", path: "/v1/attachments?name=notes.md", body: "# Hazel & ash", header: octets})
	from.must(201, nil, request{method: "POST", path: fill(appendPath), body: fmt.Sprintf(`{"parent_id":null,"role":"user","content":[%s]}`, made.Part)})
	file := string(from.must(200, nil, request{method: "GET", path: fill(conversationPathOf + "/export")}).body)
	lines := strings.SplitAfter(strings.TrimSpace(file), "\n")
	bare := strings.Join(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Contains(l, `"type":"attachment"`) }), "")
	if len(bare) == len(file) {
		t.Fatalf("the export has no attachment:\n%s", file)
	}
	tokens := func(a *testAPI) int {
		var c struct {
			Usage struct {
				ContextTokens int `json:"context_tokens"`
			}
		}
		a.must(200, &c, request{method: "GET", path: fill(conversationPathOf + "/branches/active/context")})
		return c.Usage.ContextTokens
	}
	for i, test := range []struct {
		query, file          string
		brought, added, less int // less: 1 where the context lacks the file
	}{{"", bare, 0, 0, 1}, {"?dry_run=true", file, 1, 0, 1}, {"", file, 1, 1, 0}, {"", file, 1, 0, 0}} {
		var report importReport
		to.must(200, &report, request{method: "POST", path: "/v1/imports" + test.query, body: test.file, header: octets})
		if report.Attachments != test.brought || report.AttachmentsAdded != test.added || len(report.Notes) != 1-test.brought {
			t.Errorf("%d: the report is %+v", i, report)
		}
		if got, want := tokens(to), tokens(from); (got < want) != (test.less > 0) || got > want {
			t.Errorf("%d: the context has %d tokens, and %d where it was written", i, got, want)
		}
	}
}

// TestAttachmentsNeverRun uploads what a browser would run, and gets it back as
// what it won't.
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
	for _, kind := range []string{"image/svg+xml", "text/html", "application/pdf", "text/plain; charset=utf-8", ""} {
		if attach.Shown(kind) {
			t.Errorf("%s is shown in its place", kind)
		}
	}
}

// A file takes memory as it comes, and no more than it may.
func TestReadFileIsBounded(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	most := a.store.MostAttachmentBytes()
	for _, size := range []string{"a length that is too large", "no length"} {
		req := a.newRequest(request{method: "POST", path: "/v1/attachments", header: octets, body: "x"})
		req.ContentLength, req.Body = int64(most)+1, io.NopCloser(iotest.ErrReader(errors.New("nobody reads this")))
		if size == "no length" {
			req.ContentLength, req.Body = -1, io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, most)), strings.NewReader("x")))
		}
		data, err := (&Request{Request: req}).readFile(most)
		if len(data) > 0 || !strings.Contains(fmt.Sprint(err), "The file has over") {
			t.Errorf("%s: %d bytes, %v", size, len(data), err)
		}
	}
	if !slices.Contains([]int{20 << 20}, most) {
		t.Errorf("an attachment may have %d bytes", most)
	}
}
