// Package plot draws lines on two logarithmic axes as SVG, for the pictures in
// docs/images. It has the one kind of picture that they need: what a request
// takes while something grows by powers of ten. It is no plotting library.
//
// The picture takes its colours from the reader's colour scheme, its background
// among them: a page may be dark where the reader's other pages are light.
package plot

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Chart is lines over one axis.
type Chart struct {
	Title  string
	X, Y   string // what the axes show, with the unit
	Series []Series
}

// A Series is a line through points, all of them above 0, from left to right.
type Series struct {
	Name   string // stands at the line's end
	X, Y   []float64
	Dashed bool // of what it is compared with
}

const (
	width, height           = 720, 400
	left, right, top, below = 64, 196, 40, 52 // margins; names stand in the right one
	labelGap                = 17              // between names, at least
	colours                 = 6
)

// style has the colours of Okabe and Ito, which people who see few colours can
// tell apart, a little darker on light pages and lighter on dark ones.
const style = `
.page { fill: #fff }
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 14px }
.grid { stroke: #d0d7de; stroke-width: 1 }
.line { fill: none; stroke-width: 2; stroke-linejoin: round }
.dashed { stroke-dasharray: 5 4 }
.s0 { stroke: #0072b2 } .s1 { stroke: #b34700 } .s2 { stroke: #007a5a } .s3 { stroke: #a0457f } .s4 { stroke: #7a6a00 } .s5 { stroke: #57606a }
circle.s0 { fill: #0072b2 } circle.s1 { fill: #b34700 } circle.s2 { fill: #007a5a } circle.s3 { fill: #a0457f } circle.s4 { fill: #7a6a00 } circle.s5 { fill: #57606a }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 }
text { fill: #e6edf3 }
.grid { stroke: #3d444d }
.s0 { stroke: #56b4e9 } .s1 { stroke: #f0904d } .s2 { stroke: #2fc79b } .s3 { stroke: #e08cc0 } .s4 { stroke: #e3c93a } .s5 { stroke: #9198a1 }
circle.s0 { fill: #56b4e9 } circle.s1 { fill: #f0904d } circle.s2 { fill: #2fc79b } circle.s3 { fill: #e08cc0 } circle.s4 { fill: #e3c93a } circle.s5 { fill: #9198a1 }
}`

// SVG draws the chart. A chart without points, with one that isn't above 0, or
// with more than six lines is an error.
func (c Chart) SVG() ([]byte, error) {
	xs, ys, err := c.ranges()
	if err != nil {
		return nil, fmt.Errorf("plot.SVG(%q): %w", c.Title, err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n<style>%s\n</style>\n",
		width, height, width, height, html.EscapeString(c.Title), style)
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d" rx="6"/>`+"\n", width, height)
	text(&b, left, 22, "title", "start", c.Title)
	for _, tick := range xs.ticks() {
		x := xs.at(tick)
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %dV%d"/>`+"\n", x, top, height-below)
		text(&b, x, height-below+18, "", "middle", number(tick))
	}
	for _, tick := range ys.ticks() {
		y := ys.at(tick)
		fmt.Fprintf(&b, `<path class="grid" d="M%d %.1fH%d"/>`+"\n", left, y, width-right)
		text(&b, left-8, y+4, "", "end", number(tick))
	}
	text(&b, (left+width-right)/2, height-12, "", "middle", c.X)
	fmt.Fprintf(&b, `<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (top+height-below)/2, html.EscapeString(c.Y))
	for i, s := range c.Series {
		s.draw(&b, i, xs, ys)
	}
	c.names(&b, ys)
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

func (s Series) draw(b *bytes.Buffer, colour int, xs, ys scale) {
	var path strings.Builder
	for i := range s.X {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", command, xs.at(s.X[i]), ys.at(s.Y[i]))
	}
	dashed := ""
	if s.Dashed {
		dashed = " dashed"
	}
	fmt.Fprintf(b, `<path class="line s%d%s" d="%s"/>`+"\n", colour, dashed, path.String())
	for i := range s.X {
		fmt.Fprintf(b, `<circle class="s%d" cx="%.1f" cy="%.1f" r="3"/>`+"\n", colour, xs.at(s.X[i]), ys.at(s.Y[i]))
	}
}

// names puts each line's name at the height where it ends, moved apart where
// lines end close to each other.
func (c Chart) names(b *bytes.Buffer, ys scale) {
	type name struct {
		colour int
		y      float64
	}
	names := make([]name, len(c.Series))
	for i, s := range c.Series {
		names[i] = name{i, ys.at(s.Y[len(s.Y)-1])}
	}
	slices.SortStableFunc(names, func(a, b name) int { return int(math.Copysign(1, a.y-b.y)) })
	for i := 1; i < len(names); i++ {
		names[i].y = max(names[i].y, names[i-1].y+labelGap)
	}
	// Names that were pushed below the axis push the others up again.
	for i, lowest := len(names)-1, float64(height-below); i >= 0; i, lowest = i-1, names[i].y-labelGap {
		names[i].y = min(names[i].y, lowest)
	}
	for _, n := range names {
		x := float64(width - right + 12)
		fmt.Fprintf(b, `<path class="line s%d" d="M%.1f %.1fh12"/>`+"\n", n.colour, x, n.y)
		text(b, x+17, n.y+4, "", "start", c.Series[n.colour].Name)
	}
}

func text(b *bytes.Buffer, x, y float64, class, anchor, s string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	fmt.Fprintf(b, `<text%s x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, html.EscapeString(s))
}

// A scale maps numbers to places, by their logarithm.
type scale struct {
	from, to   float64 // whole powers of ten for x, or ticks of 1, 2 and 5 for y
	start, end float64 // in the picture
	fine       bool    // ticks at 2 and 5, too
}

func (s scale) at(v float64) float64 {
	if s.from == s.to {
		return (s.start + s.end) / 2
	}
	return s.start + (math.Log10(v)-math.Log10(s.from))/(math.Log10(s.to)-math.Log10(s.from))*(s.end-s.start)
}

func (s scale) ticks() (out []float64) {
	for power := math.Floor(math.Log10(s.from)); ; power++ {
		for _, step := range []float64{1, 2, 5} {
			tick := step * math.Pow(10, power)
			switch {
			case tick > s.to*1.001:
				return out
			case tick >= s.from*0.999 && (step == 1 || s.fine):
				out = append(out, tick)
			}
		}
	}
}

func (c Chart) ranges() (xs, ys scale, err error) {
	if len(c.Series) == 0 || len(c.Series) > colours {
		return xs, ys, fmt.Errorf("%d lines, of 1 to %d", len(c.Series), colours)
	}
	lowX, highX, lowY, highY := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, s := range c.Series {
		if len(s.X) == 0 || len(s.X) != len(s.Y) {
			return xs, ys, fmt.Errorf("the line %q has %d and %d coordinates", s.Name, len(s.X), len(s.Y))
		}
		for i := range s.X {
			if !(s.X[i] > 0) || !(s.Y[i] > 0) || math.IsInf(s.X[i], 0) || math.IsInf(s.Y[i], 0) {
				return xs, ys, fmt.Errorf("the line %q has the point %v, %v", s.Name, s.X[i], s.Y[i])
			}
			lowX, highX = min(lowX, s.X[i]), max(highX, s.X[i])
			lowY, highY = min(lowY, s.Y[i]), max(highY, s.Y[i])
		}
	}
	xs = scale{from: lowX, to: highX, start: left, end: width - right}
	ys = scale{start: height - below, end: top}
	ys.from, ys.to = downTo125(lowY), upTo125(highY)
	ys.fine = ys.to/ys.from < 200
	return xs, ys, nil
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
