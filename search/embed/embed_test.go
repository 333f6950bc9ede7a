package embed

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/internal/check"
)

// A long message is embedded by its beginning, in whole letters.
func TestShortened(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text   string
		tokens int
		most   int
	}{
		{"  short \n", 2, 5},
		{strings.Repeat("word ", 20_000), 20_000, 5 * maxTextTokens},
		{strings.Repeat("é", 40_000), 1000, maxTextBytes},
		{"", 0, 0},
	} {
		got := shortened(test.text, test.tokens)
		check.That(t, len(got) <= test.most && strings.HasPrefix(strings.TrimSpace(test.text), got) && got == "" == (test.text == ""),
			"%d bytes of %d", len(got), len(test.text))
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// A question's cosine with the stored form is that of the vectors, within the rounding to bytes.
func TestCosine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 64).Draw(t, "dimensions")
		draw := func(name string) []float32 {
			return rapid.SliceOfN(rapid.Float32Range(-3, 3), n, n).Filter(func(v []float32) bool {
				return slices.ContainsFunc(v, func(x float32) bool { return math.Abs(float64(x)) > 0.01 })
			}).Draw(t, name)
		}
		a, b := draw("question"), draw("message")
		stored := Encode(b)
		got, want := VectorOf(a).Cosine(stored, Norm(stored)), cosine(a, b)
		check.That(t, math.Abs(got-want) <= 0.04, "%f, want %f", got, want)
		if got := VectorOf(b).Stored(); !slices.Equal(got, Encode(b)) {
			for i := range got {
				d := int(got[i]) - int(stored[i])
				check.That(t, d >= -1 && d <= 1, "the stored form of a question's vector is %v, want %v", got, stored)
			}
		}
	})
	check.Equal(t, "the nearness of a vector of another model", VectorOf([]float32{1, 1, 1}).Cosine([]byte{255, 128}, 127), -1)
}
