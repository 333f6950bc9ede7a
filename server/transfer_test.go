package server

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/tree"
)

// TestExportedFileCanBeImported moves a conversation from one server to
// another, and back to where it came from.
func TestExportedFileCanBeImported(t *testing.T) {
	t.Parallel()
	from, to := newAPI(t), newAPI(t)
	plant(t, from.store, "c")
	export := request{method: "GET", path: fill(conversationPathOf + "/export")}
	file := string(from.must(200, nil, export).body)
	put := request{method: "POST", path: "/v1/imports", body: file, header: octets}
	var report importReport
	to.must(200, &report, put)
	if report.Format != "coppice" || report.Messages != 8 || report.Summaries != 1 || report.Added != 9 || report.Leaves != 3 || report.BranchPoints != 1 || len(report.Notes) != 0 {
		t.Errorf("%+v", report)
	}
	// But for the mark of a summary that came in.
	if again := importOrigin.ReplaceAllString(string(to.must(200, nil, export).body), ""); again != importOrigin.ReplaceAllString(file, "") {
		t.Errorf("the same conversation exported there is\n%s\nwant\n%s", again, file)
	}
	for _, a := range []*testAPI{from, to} {
		before := a.state()
		a.must(200, &report, put)
		if report.Added != 0 || report.Present != 9 || a.state() != before {
			t.Errorf("importing what is there: %+v", report)
		}
	}
}

var importOrigin = regexp.MustCompile(`"origin":\{"imported_at":[^{}]*\},`)

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
	type shown struct {
		Summary *struct{ Origin *tree.Origin }
	}
	var here shown
	from.must(200, &here, request{method: "GET", path: path + "/branches/active/context"})
	if here.Summary == nil || here.Summary.Origin != nil {
		t.Errorf("where it was written, the context has %+v", here.Summary)
	}

	keeps := newAPI(t)
	var report importReport
	keeps.must(200, &report, put("?dry_run=true&summaries=drop"))
	if report.Summaries != 0 || report.SummariesDropped != 1 {
		t.Errorf("dropped by the request: %+v", report)
	}
	keeps.must(200, &report, put("?summaries=keep"))
	if report.Summaries != 1 || report.SummariesDropped != 0 {
		t.Errorf("%+v", report)
	}
	for _, at := range []string{"/branches/active/context", "/branches/active/explain", "/summaries/" + *made.SummaryID, "/tree"} {
		if got := string(keeps.must(200, nil, request{method: "GET", path: path + at}).body); !strings.Contains(got, `"origin":{"imported_at":"`) || !strings.Contains(got, `"format":"coppice"`) {
			t.Errorf("%s doesn't mark the summary: %s", at, got)
		}
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
	if drops.state() != before {
		t.Error("a refused import changed something")
	}
	drops.must(200, &report, put(""))
	if report.Summaries != 0 || report.SummariesDropped != 1 {
		t.Errorf("%+v", report)
	}
	var without shown
	drops.must(200, &without, request{method: "GET", path: path + "/branches/active/context"})
	if without.Summary != nil {
		t.Errorf("the context has %+v", without)
	}
	keeps.refused(400, CodeInvalidParameter, put("?summaries=maybe"))
}

func TestImportLimit(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.MaxImportBytes = 1000 })
	before := a.state()
	a.refused(413, CodeBodyTooLarge, request{method: "POST", path: "/v1/imports", header: octets,
		body: `[{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}]`})
	if a.state() != before {
		t.Error("it changed something")
	}
}

// TestImportThatBreaksOff ends the request amid the file.
func TestImportThatBreaksOff(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	body, file := io.Pipe()
	req := a.newRequest(request{method: "POST", path: "/v1/imports", header: octets})
	req.Body, req.ContentLength = body, -1
	go func() {
		_, _ = io.WriteString(file, `[{"role":"user","content":"x"},`)
		file.CloseWithError(io.ErrClosedPipe)
	}()
	if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
		res.Body.Close()
		t.Fatalf("status %d", res.StatusCode)
	}
	for deadline := time.Now().Add(30 * time.Second); len(a.lines()) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the import didn't end with its client")
		}
	}
	if l := a.lines()[0]; l["level"] != "INFO" {
		t.Errorf("the log says %v", l)
	}
}
