package tokens

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/internal/check"
)

// A word that keeps coming is counted once, however many others come and go.
func TestFrequentWordsStay(t *testing.T) {
	t.Parallel()
	calls := map[string]int{}
	c := &counter{merge: func(_ context.Context, piece string) (int, error) {
		calls[piece]++
		return 1, nil
	}}
	for i := range 5 * maxPieces {
		c.Count(fmt.Sprintf("w%s often", letters(i)))
	}
	check.Equal(t, "counted", calls[" often"], 1)
	check.That(t, len(calls) >= 5*maxPieces && len(c.now) <= maxPieces && len(c.old) <= maxPieces,
		"%d words counted, %d and %d remembered", len(calls), len(c.now), len(c.old))
}

// TestLongPiece holds that the memory of a count doesn't grow with a piece, which a
// client may make as long as a message.
func TestLongPiece(t *testing.T) {
	text := strings.Repeat("xq", 1<<20)
	O200k().Count("unpacked")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := O200k().Count(text)
	runtime.ReadMemStats(&after)
	got := after.TotalAlloc - before.TotalAlloc
	check.That(t, got <= 40*maxBlock, "%d bytes take %d of memory, want %d at most", len(text), got, 40*maxBlock)
	blocks := len(text) / maxBlock
	check.That(t, n >= len(text)/2 && n <= len(text)/2+blocks, "%d tokens", n)
}

// A watched context ends after so many looks at it.
type watched struct {
	context.Context
	looks, most int
}

func (w *watched) Err() error {
	if w.looks++; w.looks > w.most {
		return context.Canceled
	}
	return nil
}

// A count looks at its context after each block, and ends at the first look after the
// context has ended.
func TestBoundEndsWithinABlock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text  string
		block int
	}{
		"one piece": {strings.Repeat("xq", 20<<10), maxBlock},
		"words":     {strings.Repeat(" often", 40<<10), maxUnwatched},
	} {
		whole := &watched{Context: t.Context(), most: math.MaxInt}
		b := Bind(whole, O200k())
		check.Equal(t, name, b.Count(test.text), O200k().Count(test.text))
		check.NoError(t, b.Err())
		most := len(test.text) / whole.looks
		check.That(t, most <= test.block, "%s: a look for each %d bytes", name, most)
		ended := &watched{Context: t.Context(), most: 3}
		b = Bind(ended, O200k())
		n := b.Count(test.text) + b.Count("more")
		check.That(t, n == 0 && errors.Is(b.Err(), context.Canceled) && ended.looks == 4, "%s: %d tokens, %d looks", name, n, ended.looks)
	}
}

// letters is a number in letters.
func letters(n int) (s string) {
	for ; n > 0 || s == ""; n /= 26 {
		s += string(rune('a' + n%26))
	}
	return s
}

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
		n := Image(w, h, "high")
		check.Need(t, n == Image(h, w, "high") && n >= 255 && n <= 85+170*8, "%d × %d: %d", w, h, n)
	})
}
