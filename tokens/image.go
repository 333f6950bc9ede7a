package tokens

import "math"

// What a picture costs by OpenAI's rule for models that read it in tiles, such as
// GPT-4o and GPT-4.1 (OpenAI's guide "Images and vision", "Calculating costs",
// https://platform.openai.com/docs/guides/images-vision). Other providers'
// pictures of the same size cost about as much, or less.
const (
	imageBase  = 85  // of any picture; all of one in low detail
	tileTokens = 170 // of each tile in high detail
	tileSide   = 512
	mostSide   = 2048 // a larger picture is scaled down to fit this square
	shortSide  = 768  // and then until its shorter side has this
)

// Image counts what a picture of so many pixels costs. Any detail but "low" counts
// as high, because providers decide what "auto" is. A picture of unknown size costs
// as much as a square one that was scaled down.
func Image(width, height int, detail string) int {
	if detail == "low" {
		return imageBase
	}
	if width <= 0 || height <= 0 {
		width, height = shortSide, shortSide
	}
	w, h := float64(width), float64(height)
	if longest := max(w, h); longest > mostSide {
		w, h = w*mostSide/longest, h*mostSide/longest
	}
	if shortest := min(w, h); shortest > shortSide {
		w, h = w*shortSide/shortest, h*shortSide/shortest
	}
	tiles := max(1, math.Ceil(w/tileSide)) * max(1, math.Ceil(h/tileSide))
	return imageBase + tileTokens*int(tiles)
}
