package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// docs is the folder of the manual.
const docs = "../../docs"

// metricsOf returns the metrics that a server has from its start.
func metricsOf(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	database := dbtest.URL(t) // which is no replica, and so has the metrics of one that is away
	s := serve(t, []string{"DATABASE_URL=" + database, "OPENAI_API_KEY=sk-none"}, "--read-database-url", database, "--summary-model", "gpt-4o", "--model-price", "gpt-4o=2.5,10")
	call(t, http.MethodGet, s.url+"/v1/conversations", nil, http.StatusOK, nil)
	_, text, err := try(t.Context(), http.MethodGet, s.url+"/metrics", nil)
	check.NoError(t, err)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	check.Need(t, err == nil, "%v\n%s", err, text)
	problems := check.Must(promlint.NewWithMetricFamilies(slices.Collect(maps.Values(families))).Lint())(t)
	for _, p := range problems {
		check.That(t, !strings.HasPrefix(p.Metric, "coppice_"), "%s: %s", p.Metric, p.Text)
	}
	return families
}

// TestMetrics holds the manual, the dashboard and the alerts to the metrics that a
// server has: each metric stands in the manual with its type and labels, and each
// name in an expression is one of a metric. The dashboard and the alerts are JSON and
// YAML of the shape that their readers expect.
func TestMetrics(t *testing.T) {
	t.Parallel()
	there := metricsOf(t)
	read := func(name string) []byte {
		return check.Must(os.ReadFile(filepath.Join(docs, name)))(t)
	}
	manual := read("operate.md")
	checkTable(t, manual, there)
	var dashboard struct {
		UID, Title string
		Panels     []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read("grafana/coppice.json"), &dashboard); err != nil || dashboard.UID == "" {
		t.Fatalf("the dashboard: uid %q, %v", dashboard.UID, err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			checkNames(t, p.Title, target.Expr, there)
		}
	}
	var alerts struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(read("grafana/alerts.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&alerts); err != nil || len(alerts.Groups) == 0 {
		t.Fatalf("%d groups of alerts, %v", len(alerts.Groups), err)
	}
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			check.That(t, bytes.Contains(manual, []byte("`"+rule.Alert+"`")),
				"operate.md doesn't say what to do about %s", rule.Alert)
			checkNames(t, rule.Alert, rule.Expr, there)
		}
	}
}

// checkTable compares the metrics with the manual's table, both ways. A row may name
// several metrics.
func checkTable(t *testing.T, manual []byte, there map[string]*dto.MetricFamily) {
	told := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`coppice_[^|]*) \\| (\\w+)(?: by ([^|]*))? \\|").FindAllStringSubmatch(string(manual), -1) {
		labels := strings.FieldsFunc(row[3], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels)
		for name := range strings.SplitSeq(row[1], ", ") {
			name = strings.Trim(name, "`")
			told[name] = true
			if f := there[name]; f == nil {
				t.Errorf("operate.md tells of %s, which there isn't", name)
			} else if is := strings.ToLower(f.GetType().String()); row[2] != is || !slices.Equal(labels, labelsOf(f)) {
				t.Errorf("operate.md says that %s is a %s by %q; it is a %s by %q", name, row[2], labels, is, labelsOf(f))
			}
		}
	}
	for name := range there {
		check.That(t, !strings.HasPrefix(name, "coppice_") || told[name], "operate.md's table lacks %s", name)
	}
}

func labelsOf(f *dto.MetricFamily) []string {
	labels := map[string]bool{}
	for _, m := range f.Metric {
		for _, l := range m.Label {
			labels[l.GetName()] = true
		}
	}
	return slices.Sorted(maps.Keys(labels))
}

var (
	metricName   = regexp.MustCompile(`\b(?:coppice|go|process)_\w+`)
	histogramEnd = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// checkNames fails where a PromQL expression names a metric that there isn't.
func checkNames(t *testing.T, where, expr string, there map[string]*dto.MetricFamily) {
	t.Helper()
	for _, name := range metricName.FindAllString(expr, -1) {
		if there[name] == nil && there[histogramEnd.ReplaceAllString(name, "")].GetType() != dto.MetricType_HISTOGRAM {
			t.Errorf("%s: there is no %s", where, name)
		}
	}
}

// Profiles and metrics are where one asks for them, and not at the server's own address;
// profiles are for this machine alone. A collector of traces that is away costs a server
// its spans and nothing else.
func TestPprof(t *testing.T) {
	t.Parallel()
	const key = "sk-zebra"
	s := serve(t, []string{"DATABASE_URL=" + dbtest.URL(t), "COPPICE_PPROF_ADDR=localhost:0",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_BSP_SCHEDULE_DELAY=20"}, "--openai-api-key", key, "--metrics-addr", "127.0.0.1:0")
	where := func(what string) string {
		at := regexp.MustCompile(`"serving ` + what + `","url":"([^"]+)"`).FindStringSubmatch(s.logged())
		if len(at) == 0 {
			t.Fatalf("no address of the %s:\n%s", what, s.logged())
		}
		return at[1]
	}
	url := where("profiles")
	if _, text, err := try(t.Context(), http.MethodGet, where("metrics"), nil); !bytes.Contains(text, []byte("coppice_build_info")) {
		t.Errorf("%v: %.200s", err, text)
	}
	for path, want := range map[string]int{
		"": 200, "goroutine?debug=1": 200, "heap": 200, "trace?seconds=0.1": 200,
		"cmdline": 404, // it would show keys
	} {
		status, body, err := try(t.Context(), http.MethodGet, url+path, nil)
		check.That(t, err == nil && status == want && len(body) != 0 && !strings.Contains(string(body), key),
			"%s: status %d, %d bytes, %v", path, status, len(body), err)
	}
	for path, base := range map[string]string{"/debug/pprof/": s.url, "/metrics": s.url, "/v1/conversations": strings.TrimSuffix(url, "/debug/pprof/")} {
		if status, _, err := try(t.Context(), http.MethodGet, base+path, nil); err != nil || status != http.StatusNotFound {
			t.Errorf("%s is served by the other listener: status %d, %v", path, status, err)
		}
	}
	// Of web pages: by a name of their own that leads here, or by their reader's browser.
	for header, want := range map[string]int{
		"Host: evil.example": 403, "Host: app.localhost": 200, "Origin: null": 403, "Origin: " + s.url: 403,
		"Sec-Fetch-Site: same-site": 403, "Sec-Fetch-Site: same-origin": 200,
	} {
		req := check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
		name, value, _ := strings.Cut(header, ": ")
		if req.Header.Set(name, value); name == "Host" {
			req.Host = value
		}
		res := check.Must(http.DefaultClient.Do(req))(t)
		if res.Body.Close(); res.StatusCode != want {
			t.Errorf("%s: status %d, want %d", header, res.StatusCode, want)
		}
	}
	// A body that never comes is not waited for.
	conn := check.Must(net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/debug/pprof/")))(t)
	defer conn.Close()
	check.Must(io.WriteString(conn, "GET /debug/pprof/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"))(t)
	check.NoError(t, conn.SetReadDeadline(time.Now().Add(timeout)))
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400") {
		t.Errorf("a request with a body: %v, %q", err, answer)
	}
	mustTalk(t, s.url, newTalk(t, s.url), 2)
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 || !strings.Contains(s.logged(), "traces could not be sent") {
		t.Errorf("exit code %d, or nothing said of the collector", code)
	}
	r := runProgram(t, []string{"OTEL_TRACES_EXPORTER=zipkin"}, nil, "serve", "--addr", "127.0.0.1:0")
	check.That(t, r.code == exitUsage && strings.Contains(r.stderr, "give otlp, or none"),
		"exit code %d\n%s", r.code, r.stderr)
}
