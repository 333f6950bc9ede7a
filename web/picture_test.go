package web_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chromedp/chromedp"
)

// snapshot leaves a picture of the page where COPPICE_SNAPSHOTS names a folder.
func (b *tab) snapshot(name string) {
	folder := os.Getenv("COPPICE_SNAPSHOTS")
	if folder == "" {
		return
	}
	b.picture(filepath.Join(folder, strings.ReplaceAll(b.t.Name(), "/", "_")+"-"+name+".png"))
}

func (b *tab) picture(file string) {
	b.t.Helper()
	shot, err := png.Decode(bytes.NewReader(run(b, chromedp.CaptureScreenshot())))
	if err != nil {
		b.t.Fatal(err)
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, reduce(shot)); err != nil {
		b.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// reduce gives a picture with the 256 colours that stand for most of it: a page
// has few, and text the shades between them. It is a third of the size.
func reduce(from image.Image) *image.Paletted {
	box := from.Bounds()
	colours := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			colours[at(x, y)]++
		}
	}
	type used struct {
		colour color.RGBA
		count  int
	}
	var all []used
	for c, n := range colours {
		all = append(all, used{c, n})
	}
	slices.SortFunc(all, func(a, b used) int {
		if a.count != b.count {
			return b.count - a.count
		}
		return bytes.Compare([]byte{a.colour.R, a.colour.G, a.colour.B}, []byte{b.colour.R, b.colour.G, b.colour.B})
	})
	var palette color.Palette
	for _, apart := range []int{12, 0} { // first those that differ to the eye
		for _, u := range all {
			if len(palette) < 256 && !slices.ContainsFunc(palette, func(c color.Color) bool { return distance(c.(color.RGBA), u.colour) <= apart }) {
				palette = append(palette, u.colour)
			}
		}
	}
	index := map[color.RGBA]uint8{}
	for c := range colours {
		index[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(box, palette)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			out.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	return out
}

// distance is how far two colours are apart, over all channels.
func distance(a, b color.RGBA) int {
	apart := func(x, y uint8) int { return max(int(x), int(y)) - min(int(x), int(y)) }
	return apart(a.R, b.R) + apart(a.G, b.G) + apart(a.B, b.B)
}
