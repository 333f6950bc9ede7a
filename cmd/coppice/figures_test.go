package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/coppice-chat/coppice/db/dbtest"
)

// docs is the folder of the manual.
const docs = "../../docs"

// A figure is a metric's kind and labels. Its suffixes are what its series'
// names end in.
type figure struct {
	kind   dto.MetricType
	labels []string
}

// figures are all that a server gives from its start, but for routes nobody
// has asked for yet.
func figures(t *testing.T) map[string]figure {
	t.Helper()
	database := dbtest.URL(t) // which is no replica, and so has the figures of one that is away
	s := serve(t, []string{"DATABASE_URL=" + database, "OPENAI_API_KEY=sk-none"}, "--read-database-url", database, "--summary-model", "gpt-4o", "--model-price", "gpt-4o=2.5,10")
	call(t, http.MethodGet, s.url+"/v1/conversations", nil, http.StatusOK, nil)
	_, text, err := try(t.Context(), http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	found := map[string]figure{}
	for name, family := range families {
		labels := map[string]bool{}
		for _, m := range family.Metric {
			for _, l := range m.Label {
				labels[l.GetName()] = true
			}
		}
		found[name] = figure{family.GetType(), slices.Sorted(maps.Keys(labels))}
	}
	problems, err := promlint.NewWithMetricFamilies(slices.Collect(maps.Values(families))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "coppice_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	return found
}

// TestFigures holds the manual, the dashboard and the alerts to the figures
// that a server has.
func TestFigures(t *testing.T) {
	t.Parallel()
	there := figures(t)
	t.Run("manual", func(t *testing.T) { figuresAreTold(t, there) })
	t.Run("dashboard", func(t *testing.T) { dashboardIsSound(t, there) })
	t.Run("alerts", func(t *testing.T) { alertsAreSound(t, there) })
}

// figuresAreTold compares the metrics with the manual's table, both ways: their
// names, types and labels. A row may name several metrics.
func figuresAreTold(t *testing.T, there map[string]figure) {
	text, err := os.ReadFile(filepath.Join(docs, "operate.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`coppice_[^|]*) \\| (\\w+)(?: by ([^|]*))? \\|").FindAllStringSubmatch(string(text), -1) {
		kind, labels := row[2], strings.FieldsFunc(row[3], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels)
		for name := range strings.SplitSeq(row[1], ", ") {
			name = strings.Trim(name, "`")
			told[name] = true
			if f, ok := there[name]; !ok {
				t.Errorf("operate.md tells of %s, which there isn't", name)
			} else if is := strings.ToLower(f.kind.String()); kind != is || !slices.Equal(labels, f.labels) {
				t.Errorf("operate.md says that %s is a %s by %q; it is a %s by %q", name, kind, labels, is, f.labels)
			}
		}
	}
	for name := range there {
		if strings.HasPrefix(name, "coppice_") && !told[name] {
			t.Errorf("operate.md's table lacks %s", name)
		}
	}
}

var (
	stringLiteral = regexp.MustCompile(`"(\\.|[^"])*"`)
	selected      = regexp.MustCompile(`\b((?:coppice|go|process)_\w+|up)\b(?:\{([^}]*)\})?`)
	matcher       = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouping      = regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`)
	histogramEnd  = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// checkExpression holds a PromQL expression to the figures there are: their
// names, and the labels that it selects and groups by. It is no parser; that
// brackets match and that histograms are read by their buckets it sees.
func checkExpression(t *testing.T, where, expr string, there map[string]figure) {
	t.Helper()
	plain := stringLiteral.ReplaceAllString(expr, `""`) // whose braces are no selectors
	for _, pair := range []string{"()", "{}", "[]"} {
		if strings.Count(plain, pair[:1]) != strings.Count(plain, pair[1:]) {
			t.Errorf("%s: %s don't match in %s", where, pair, expr)
		}
	}
	known := map[string]bool{"job": true, "instance": true, "le": true} // that Prometheus adds
	uses := selected.FindAllStringSubmatch(plain, -1)
	if len(uses) == 0 {
		t.Errorf("%s: no figure in %s", where, expr)
	}
	for _, use := range uses {
		name := use[1]
		f, ok := there[name]
		if base := histogramEnd.ReplaceAllString(name, ""); !ok && there[base].kind == dto.MetricType_HISTOGRAM {
			f, ok = there[base], true
		} else if f.kind == dto.MetricType_HISTOGRAM {
			ok = false // has no series of its own name
		}
		if name == "up" { // which Prometheus makes
			continue
		}
		if !ok {
			t.Errorf("%s: there is no %s", where, name)
			continue
		}
		for _, m := range matcher.FindAllStringSubmatch(use[2], -1) {
			if !slices.Contains(f.labels, m[1]) && m[1] != "job" && m[1] != "instance" {
				t.Errorf("%s: %s has no label %s", where, name, m[1])
			}
		}
		for _, l := range f.labels {
			known[l] = true
		}
		if counter := f.kind == dto.MetricType_COUNTER || f.kind == dto.MetricType_HISTOGRAM; counter &&
			!regexp.MustCompile(`(rate|increase)\(`+name+`\b`).MatchString(plain) {
			t.Errorf("%s: %s only ever grows, and is read without rate() or increase()", where, name)
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(plain, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			if label = strings.TrimSpace(label); !known[label] {
				t.Errorf("%s: no figure in it has the label %q it groups by", where, label)
			}
		}
	}
}

// dashboardIsSound looks whether Grafana can show the dashboard.
func dashboardIsSound(t *testing.T, there map[string]figure) {
	text, err := os.ReadFile(filepath.Join(docs, "grafana", "coppice.json"))
	if err != nil {
		t.Fatal(err)
	}
	type datasource struct{ Type, UID string }
	var dashboard struct {
		UID, Title    string
		SchemaVersion int
		Templating    struct{ List []struct{ Name, Type string } }
		Panels        []struct {
			ID                       int
			Type, Title, Description string
			Datasource               datasource
			GridPos                  struct{ X, Y, W, H int }
			FieldConfig              struct{ Defaults struct{ Unit string } }
			Targets                  []struct {
				RefID, Expr, LegendFormat string
				Datasource                datasource
			}
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || dashboard.Title == "" || dashboard.SchemaVersion == 0 || len(dashboard.Panels) < 10 {
		t.Errorf("uid %q, title %q, schema %d, %d panels", dashboard.UID, dashboard.Title, dashboard.SchemaVersion, len(dashboard.Panels))
	}
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range dashboard.Templating.List {
		variables[v.Name] = true
	}
	ids := map[int]bool{}
	cells := map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: the id is taken, or there is no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.GridPos.W < 1 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s: lies outside of the grid", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, taken := cells[[2]int{x, y}]; taken {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource != (datasource{"prometheus", "${datasource}"}) {
			t.Errorf("%s: lacks targets, a description, a unit or the data source", p.Title)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.Datasource != p.Datasource || target.LegendFormat == "" {
				t.Errorf("%s: target %q is there twice, or lacks a legend", p.Title, target.RefID)
			}
			refs[target.RefID] = true
			for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				if !variables[v[1]] {
					t.Errorf("%s: there is no variable %s", p.Title, v[0])
				}
			}
			checkExpression(t, p.Title, target.Expr, there)
		}
	}
}

// alertsAreSound looks whether Prometheus can read the rules.
func alertsAreSound(t *testing.T, there map[string]figure) {
	text, err := os.ReadFile(filepath.Join(docs, "grafana", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	manual, err := os.ReadFile(filepath.Join(docs, "operate.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" || names[rule.Alert] || rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("%q: the name is empty or taken, or there is no summary or severity", rule.Alert)
			}
			names[rule.Alert] = true
			if !strings.Contains(string(manual), "`"+rule.Alert+"`") {
				t.Errorf("operate.md doesn't say what to do about %s", rule.Alert)
			}
			checkExpression(t, rule.Alert, rule.Expr, there)
		}
	}
	if len(names) < 5 {
		t.Errorf("%d alerts", len(names))
	}
}
