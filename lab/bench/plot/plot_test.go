package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestSVG(t *testing.T) {
	t.Parallel()
	chart := Chart{
		Title: "Context & transcript", X: "messages <of a line>", Y: "median, ms",
		Series: []Series{
			{Name: "context", X: []float64{100, 1e3, 1e6}, Y: []float64{0.9, 0.92, 0.95}},
			{Name: "transcript", X: []float64{100, 1e3, 1e6}, Y: []float64{0.9, 0.92, 0.95}},
			{Name: "load all", X: []float64{100, 1e3}, Y: []float64{0.3, 140}, Dashed: true},
		},
	}
	got, err := chart.SVG()
	if err != nil {
		t.Fatal(err)
	}
	points, texts := 0, []string{}
	d := xml.NewDecoder(strings.NewReader(string(got)))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range e.Attr {
			if a.Name.Local == "style" && strings.Contains(a.Value, "#") {
				t.Errorf("the colour in %q is the same on light and dark pages", a.Value)
			}
			if e.Name.Local == "path" && regexp.MustCompile(`^fill:var\(--c[3-8]\)`).MatchString(a.Value) {
				points++
			}
		}
		if e.Name.Local == "text" {
			var s string
			if err := d.DecodeElement(&s, &e); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, s)
		}
	}
	if want := 8 + len(chart.Series); points != want { // the legend shows one of each line
		t.Errorf("%d points, want %d", points, want)
	}
	for _, want := range []string{"Context & transcript", "100", "1 k", "10 k", "100 k", "1 M", "messages <of a line>", "median, ms", "context", "transcript", "load all"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%q is not among %q", want, texts)
		}
	}
}

// Names of lines that end at one height stand apart, and inside the picture.
func TestNamesStandApart(t *testing.T) {
	t.Parallel()
	var c Chart
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		c.Series = append(c.Series, Series{Name: name, X: []float64{1, 10}, Y: []float64{5, 1}})
	}
	got, err := c.SVG()
	if err != nil {
		t.Fatal(err)
	}
	heights := map[string]bool{}
	for _, name := range regexp.MustCompile(`<text x="([\d.]+)" y="-([\d.]+)"[^>]*>([a-f])<`).FindAllStringSubmatch(string(got), -1) {
		x, _ := strconv.ParseFloat(name[1], 64)
		y, _ := strconv.ParseFloat(name[2], 64)
		if x < width-names || x > width || y < 0 || y > height {
			t.Errorf("%s stands at %v, %v", name[3], x, y)
		}
		heights[name[2]] = true
	}
	if len(heights) != 6 {
		t.Errorf("names at the heights %v\n%s", heights, got)
	}
}

// A line of one point has a picture, too.
func TestOnePoint(t *testing.T) {
	t.Parallel()
	if _, err := (Chart{Series: []Series{{Name: "a", X: []float64{1}, Y: []float64{1}}}}).SVG(); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeDrawn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Chart{
		"no line":      {},
		"no point":     {Series: []Series{{}}},
		"a half point": {Series: []Series{{X: []float64{1, 2}, Y: []float64{1}}}},
		"zero":         {Series: []Series{{X: []float64{1}, Y: []float64{0}}}},
		"no number":    {Series: []Series{{X: []float64{1}, Y: []float64{math.NaN()}}}},
		"infinite":     {Series: []Series{{X: []float64{math.Inf(1)}, Y: []float64{1}}}},
		"too many":     {Series: make([]Series, 7)},
	} {
		if svg, err := c.SVG(); err == nil {
			t.Errorf("%s: no error, and %s", name, svg)
		}
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		v, down, up float64
	}{{1, 1, 1}, {1.2, 1, 2}, {2, 2, 2}, {4.9, 2, 5}, {7, 5, 10}, {0.03, 0.02, 0.05}, {100, 100, 100}} {
		if down, up := downTo125(test.v), upTo125(test.v); math.Abs(down-test.down) > 1e-9 || math.Abs(up-test.up) > 1e-9 {
			t.Errorf("%v: %v and %v, want %v and %v", test.v, down, up, test.down, test.up)
		}
	}
}
