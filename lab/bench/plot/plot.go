// Package plot draws lines over two logarithmic axes, as SVG. A picture follows
// the reader's light or dark colours.
package plot

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Chart is lines over one axis.
type Chart struct {
	Title  string
	X, Y   string // what the axes show, with the unit
	Series []Series
}

// A Series is a line through points, all of them above 0, from left to right.
type Series struct {
	Name   string
	X, Y   []float64
	Dashed bool // of what it is compared with
}

const (
	width, height = 540, 300 // in points: 720 by 400 pixels
	names         = 150      // that the names take at the right
	margin        = 9
)

// A tone is a colour on light pages and on dark ones.
type tone struct{ light, dark string }

var (
	page, ink, grid = tone{"#FFFFFF", "#0D1117"}, tone{"#24292F", "#E6EDF3"}, tone{"#D0D7DE", "#3D444D"}
	// The colours of lines are those of Okabe and Ito, which people who see few
	// colours can tell apart: a little darker on light pages, and lighter on dark
	// ones.
	lines = []tone{{"#0072B2", "#56B4E9"}, {"#B34700", "#F0904D"}, {"#007A5A", "#2FC79B"}, {"#A0457F", "#E08CC0"}, {"#7A6A00", "#E3C93A"}, {"#57606A", "#9198A1"}}
	tones = slices.Concat([]tone{page, ink, grid}, lines)
)

// RGBA gives the light colour, in which a picture is drawn at first.
func (t tone) RGBA() (r, g, b, a uint32) {
	n, _ := strconv.ParseUint(t.light[1:], 16, 32) // the tones above are well formed
	return color.RGBA{R: uint8(n >> 16), G: uint8(n >> 8), B: uint8(n), A: 255}.RGBA()
}

// SVG draws the chart. A chart without points, with one that isn't above 0, or
// with more than six lines is an error.
func (c Chart) SVG() ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("plot.SVG(%q): %w", c.Title, err)
	}
	p := plot.New()
	p.BackgroundColor = page
	p.Title.Text, p.Title.Padding = c.Title, margin
	p.Title.TextStyle.Font, p.Title.TextStyle.Color = sans(10.5), ink
	p.Legend.TextStyle.Font, p.Legend.TextStyle.Color = sans(10), ink
	p.Legend.Left, p.Legend.Top, p.Legend.Padding = true, true, 4
	for _, axis := range []struct {
		*plot.Axis
		label string
	}{{&p.X, c.X}, {&p.Y, c.Y}} {
		axis.Scale, axis.Label.Text = plot.LogScale{}, axis.label
		axis.LineStyle.Width, axis.Tick.LineStyle.Width, axis.Padding = 0, 0, 4
		axis.Label.TextStyle.Font, axis.Tick.Label.Font = sans(10), sans(9)
		axis.Label.TextStyle.Color, axis.Tick.Label.Color = ink, ink
	}
	mesh := plotter.NewGrid()
	mesh.Horizontal.Color, mesh.Vertical.Color = grid, grid
	mesh.Horizontal.Width, mesh.Vertical.Width = 0.75, 0.75
	p.Add(mesh)
	if err := c.draw(p); err != nil {
		return nil, fmt.Errorf("plot.SVG(%q): %w", c.Title, err)
	}
	p.X.Min, p.X.Max = apart(p.X.Min, p.X.Max)
	p.Y.Min, p.Y.Max = apart(downTo125(p.Y.Min), upTo125(p.Y.Max))
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks(false), ticks(p.Y.Max/p.Y.Min < 200)

	canvas := vgsvg.New(width, height)
	whole := draw.New(canvas)
	whole.SetColor(page)
	whole.Fill(whole.Rectangle.Path())
	legend := p.Legend
	p.Legend = plot.NewLegend()
	p.Draw(draw.Crop(whole, margin, -names-margin, margin, -margin))
	legend.Draw(draw.Crop(whole, width-names, 0, 0, -3*margin))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("plot.SVG(%q): %w", c.Title, err)
	}
	return []byte(c.dress(out.String())), nil
}

// draw adds the lines. The legend names them from the highest end to the lowest,
// as the lines end beside it.
func (c Chart) draw(p *plot.Plot) error {
	type drawn struct {
		Series
		line   *plotter.Line
		points *plotter.Scatter
	}
	var all []drawn
	for i, s := range c.Series {
		xys := make(plotter.XYs, len(s.X))
		for j := range s.X {
			xys[j] = plotter.XY{X: s.X[j], Y: s.Y[j]}
		}
		line, points, err := plotter.NewLinePoints(xys)
		if err != nil {
			return err
		}
		line.Color, line.Width = lines[i], 1.5
		points.Color, points.Shape, points.Radius = lines[i], draw.CircleGlyph{}, 2.25
		if s.Dashed {
			line.Dashes = []vg.Length{3.75, 3}
		}
		p.Add(line, points)
		all = append(all, drawn{s, line, points})
	}
	slices.SortStableFunc(all, func(a, b drawn) int { return -cmp.Compare(a.Y[len(a.Y)-1], b.Y[len(b.Y)-1]) })
	for _, d := range all {
		p.Legend.Add(d.Name, d.line, d.points)
	}
	return nil
}

// dress gives a picture that was drawn in light colours the dark ones besides,
// a name, and the reader's own letters.
func (c Chart) dress(svg string) string {
	var light, dark strings.Builder
	for i, t := range tones {
		svg = strings.ReplaceAll(svg, ":"+t.light, fmt.Sprintf(":var(--c%d)", i))
		fmt.Fprintf(&light, "--c%d:%s;", i, t.light)
		fmt.Fprintf(&dark, "--c%d:%s;", i, t.dark)
	}
	svg = strings.ReplaceAll(svg, "font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;", "")
	head, rest, _ := strings.Cut(svg[strings.Index(svg, "<svg"):], ">\n")
	return fmt.Sprintf("%s\n\trole=\"img\" aria-label=\"%s\">\n<style>\n:root{%s}\n@media (prefers-color-scheme: dark){:root{%s}}\ntext{font-family:system-ui,sans-serif}\n</style>\n%s",
		head, html.EscapeString(c.Title), light.String(), dark.String(), rest)
}

func sans(size font.Length) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
}

// apart gives both ends of an axis, which must differ.
func apart(from, to float64) (float64, float64) {
	if from == to {
		return from / 2, to * 2
	}
	return from, to
}

// ticks marks whole powers of ten; fine ones, two and five times these as well.
func ticks(fine bool) plot.Ticker {
	return plot.TickerFunc(func(from, to float64) (out []plot.Tick) {
		for power := math.Floor(math.Log10(from)); ; power++ {
			for _, step := range []float64{1, 2, 5} {
				tick := step * math.Pow(10, power)
				switch {
				case tick > to*1.001:
					return out
				case tick >= from*0.999 && (step == 1 || fine):
					out = append(out, plot.Tick{Value: tick, Label: number(tick)})
				}
			}
		}
	})
}

func (c Chart) check() error {
	if len(c.Series) == 0 || len(c.Series) > len(lines) {
		return fmt.Errorf("%d lines, of 1 to %d", len(c.Series), len(lines))
	}
	for _, s := range c.Series {
		if len(s.X) == 0 || len(s.X) != len(s.Y) {
			return fmt.Errorf("the line %q has %d and %d coordinates", s.Name, len(s.X), len(s.Y))
		}
		for i := range s.X {
			if !(s.X[i] > 0) || !(s.Y[i] > 0) || math.IsInf(s.X[i], 0) || math.IsInf(s.Y[i], 0) {
				return fmt.Errorf("the line %q has the point %v, %v", s.Name, s.X[i], s.Y[i])
			}
		}
	}
	return nil
}

// downTo125 is the greatest of …, 1, 2, 5, 10, … that is not above v.
func downTo125(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{5, 2, 1} {
		if step*power <= v*1.0001 {
			return step * power
		}
	}
	return power
}

// upTo125 is the smallest of them that is not below v.
func upTo125(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5} {
		if step*power >= v*0.9999 {
			return step * power
		}
	}
	return 10 * power
}

func number(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + " M"
	case v >= 1e3:
		return strconv.FormatFloat(v/1e3, 'g', 3, 64) + " k"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
