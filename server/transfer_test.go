package server

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

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
		Counts  struct{ Folded int }
	}
	var here shown
	from.must(200, &here, request{method: "GET", path: path + "/branches/active/context"})
	if here.Summary == nil || here.Summary.Origin != nil {
		t.Errorf("where it was written, the context has %+v", here.Summary)
	}

	keeps := newAPI(t)
	var report importReport
	keeps.must(200, &report, put("?summaries=keep"))
	if report.Summaries != 1 || report.SummariesDropped != 0 {
		t.Errorf("%+v", report)
	}
	check := func(where string, o *tree.Origin) {
		t.Helper()
		if o == nil || o.Format != "coppice" || o.ImportedAt.IsZero() || o.Merged {
			t.Errorf("%s: the origin is %+v", where, o)
		}
	}
	var there shown
	keeps.must(200, &there, request{method: "GET", path: path + "/branches/active/context"})
	if there.Summary == nil {
		t.Fatal("the context has no summary")
	}
	check("context", there.Summary.Origin)
	var explained struct {
		Summaries []struct{ Origin *tree.Origin }
	}
	keeps.must(200, &explained, request{method: "GET", path: path + "/branches/active/explain"})
	check("explain", explained.Summaries[0].Origin)
	var one struct{ Origin *tree.Origin }
	keeps.must(200, &one, request{method: "GET", path: path + "/summaries/" + *made.SummaryID})
	check("summary", one.Origin)
	var all struct {
		Data []struct {
			Kind   string
			Origin *tree.Origin
		}
	}
	keeps.must(200, &all, request{method: "GET", path: path + "/tree"})
	for _, n := range all.Data {
		if n.Kind == "summary" {
			check("tree", n.Origin)
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

	for name, a := range map[string]*testAPI{
		"request": newAPI(t), "server": newAPI(t, func(c *Config) { c.DropImportedSummaries = true }),
	} {
		query := "?summaries=drop"
		if name == "server" {
			before := a.state()
			a.refused(400, CodeInvalidParameter, put("?summaries=keep"))
			if a.state() != before {
				t.Error("a refused import changed something")
			}
			query = ""
		}
		a.must(200, &report, put(query))
		if report.Summaries != 0 || report.SummariesDropped != 1 {
			t.Errorf("%s: %+v", name, report)
		}
		var without shown
		a.must(200, &without, request{method: "GET", path: path + "/branches/active/context"})
		if without.Summary != nil || without.Counts.Folded != 0 {
			t.Errorf("%s: the context has %+v", name, without)
		}
	}
	keeps.refused(400, CodeInvalidParameter, put("?summaries=maybe"))
}

func TestImportTellsWhatItRepaired(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	var report importReport
	a.must(200, &report, request{method: "POST", path: "/v1/imports", header: octets,
		body: `[{"role":"user","content":"a\u0000b"},{"role":"assistant","content":"c"}]`})
	if report.Added != 2 || len(report.Notes) != 1 || report.Notes[0].Action != "repaired" || report.Notes[0].Kind != "text" {
		t.Errorf("%+v", report)
	}
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

// TestSlowClientsAreWaitedFor streams both ways for longer than any of the
// server's timeouts, with pauses that are shorter.
func TestSlowClientsAreWaitedFor(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second // 6 for a request's body, 9 for an answer
	const pause, pauses = 400 * time.Millisecond, 25
	a := newAPI(t, func(c *Config) { c.RequestTimeout = timeout })

	t.Run("import", func(t *testing.T) {
		t.Parallel()
		a := a.with(t)
		body, file := io.Pipe()
		req := a.newRequest(request{method: "POST", path: "/v1/imports", header: octets})
		req.Body, req.ContentLength = body, -1
		go func() {
			_, _ = io.WriteString(file, `[{"role":"user","content":"`)
			for range pauses {
				time.Sleep(pause)
				_, _ = io.WriteString(file, "x")
			}
			_, _ = io.WriteString(file, `"}]`)
			file.Close()
		}()
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if answer, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 || !strings.Contains(string(answer), `"added":1`) {
			t.Errorf("status %d, %v: %s", res.StatusCode, err, answer)
		}
	})

	t.Run("tree", func(t *testing.T) {
		t.Parallel()
		a := a.with(t)
		id := uuid.New()
		line(t, a.store, id, 15_000)
		res, err := http.DefaultTransport.RoundTrip(a.newRequest(request{method: "GET", path: "/v1/conversations/" + id.String() + "/tree?preview=200"}))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		for range pauses {
			time.Sleep(pause)
			if _, err := io.CopyN(io.Discard, res.Body, 200_000); err != nil {
				t.Fatal(err)
			}
		}
		rest, err := io.ReadAll(res.Body)
		if err != nil || !strings.HasSuffix(string(rest), "\"next_cursor\":null}\n") {
			t.Errorf("the answer ended with %v", err)
		}
	})
}

func TestExportOfAnEmptyConversation(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must(201, nil, request{method: "POST", path: "/v1/conversations", body: fill(`{"id":"{{empty}}","title":"Hazel"}`)})
	if got := a.must(200, nil, request{method: "GET", path: fill("/v1/conversations/{{empty}}/export?format=markdown")}).body; !strings.HasPrefix(string(got), "# Hazel\n") {
		t.Errorf("%q", got)
	}
}

// TestImportBomb sends a small archive that unpacks to a large one.
func TestImportBomb(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.MaxConversation, c.MaxImportBytes = 1<<20, 16<<20 })
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	f, err := w.Create("conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, `[{"uuid":"a","name":"A","chat_messages":[{"uuid":"m","sender":"human","text":"hi"}]},{"uuid":"b","name":"%s"}]`, strings.Repeat("x", 12<<20))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if packed.Len() > 1<<17 {
		t.Fatalf("the archive has %d bytes", packed.Len())
	}
	p := a.refused(413, CodeBodyTooLarge, request{method: "POST", path: "/v1/imports", header: octets, body: packed.String()})
	if !strings.Contains(p.Detail, "1048576 bytes") || !strings.Contains(p.Detail, "1 conversations before that were stored") {
		t.Error(p.Detail)
	}
}

// The answer to a file of no format names them all, and the nearest to the end.
func TestImportNamesTheNearestFormat(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	p := a.refused(400, CodeUnknownFormat, request{method: "POST", path: "/v1/imports", header: octets, body: `[{"uuid":"a","updated_at":"x"}]`})
	if !strings.Contains(p.Detail, "The nearest is claude") || !strings.Contains(p.Detail, "format=claude") {
		t.Error(p.Detail)
	}
}
