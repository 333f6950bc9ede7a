package tokens

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/internal/check"
)

// TestImage holds the examples of OpenAI's guide.
func TestImage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		width, height int
		detail        string
		want          int
	}{
		{1024, 1024, "high", 765},
		{2048, 4096, "high", 1105},
		{4096, 8192, "low", 85},
		{512, 512, "high", 255},
		{513, 512, "", 425},
		{1, 1, "auto", 255},
		{0, 0, "", 765},
	} {
		check.Equal(t, fmt.Sprintf("%d × %d in %q", test.width, test.height, test.detail), Image(test.width, test.height, test.detail), test.want)
	}
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.IntRange(1, 1<<20)
		w, h := side.Draw(t, "width"), side.Draw(t, "height")
		if n := Image(w, h, "high"); n != Image(h, w, "high") || n < 255 || n > 85+170*8 {
			t.Fatalf("%d × %d: %d", w, h, n)
		}
	})
}
