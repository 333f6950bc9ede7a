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

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

func pngOf(t testing.TB, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	check.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))))
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
