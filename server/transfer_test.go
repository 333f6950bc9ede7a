package server

import (
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
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
	if report.Summaries != 0 || report.Dropped != 1 {
		t.Errorf("dropped by the request: %+v", report)
	}
	keeps.must(200, nil, put("?summaries=keep"))
	for _, at := range []string{"/branches/active/context", "/branches/active/explain", "/summaries/" + *made.SummaryID, "/tree"} {
		check.Has(t, at, string(keeps.must(200, nil, request{method: "GET", path: path + at}).body), `"origin":{"imported_at":"`, `"format":"coppice"`)
	}
	for name, a := range map[string]*testAPI{"as it was written here": from, "as it came with the file": keeps} {
		var link struct{ Token string }
		a.must(201, &link, request{method: "POST", path: path + "/branches/active/shares", body: `{"summaries":true}`})
		var opened struct{ Summary *struct{ Imported bool } }
		a.must(200, &opened, request{method: "GET", path: "/v1/shared/" + link.Token})
		if opened.Summary == nil || opened.Summary.Imported != (a == keeps) {
			t.Errorf("%s, a link shows the summary %+v", name, opened.Summary)
		}
	}

	drops := newAPI(t, func(c *Config) { c.DropImportedSummaries = true })
	before := drops.state()
	drops.refused(400, CodeInvalidParameter, put("?summaries=keep"))
	check.Equal(t, "what is stored", drops.state(), before)
	drops.must(200, &report, put(""))
	if report.Summaries != 0 || report.Dropped != 1 {
		t.Errorf("%+v", report)
	}
	keeps.refused(400, CodeInvalidParameter, put("?summaries=maybe"))
}

// TestImportTakesTheTypesOfFiles sends a file under each content type that a client says
// of an export, and one that is too large.
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

// TestImportEndsAfterItsFile holds that an import whose file has come ends in time though
// what it waits for doesn't come.
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
