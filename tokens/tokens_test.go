package tokens

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tiktoken-go/tokenizer"
)

func TestO200k(t *testing.T) {
	// Counts as tiktoken's o200k_base gives them.
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"hello world", 2},
		{"tiktoken is great!", 6},
		{"antidisestablishmentarianism", 6},
		{"お誕生日おめでとう", 8},
		{"<|endoftext|>", 7}, // told apart from the control token of that name
	} {
		if got := O200k().Count(c.text); got != c.want {
			t.Errorf("Count(%q) = %d, want %d", c.text, got, c.want)
		}
	}
}

func TestParallel(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if got := O200k().Count("hello world"); got != 2 {
					t.Errorf("Count = %d, want 2", got)
				}
			}
		})
	}
	wg.Wait()
}

// A word that keeps coming is counted once, however many others come and go.
func TestFrequentWordsStay(t *testing.T) {
	t.Parallel()
	calls := map[string]int{}
	c := &counter{count: func(piece string) int {
		calls[piece]++
		return 1
	}}
	for i := range 5 * maxPieces {
		c.Count(fmt.Sprintf("w%s often", letters(i)))
	}
	if calls[" often"] != 1 {
		t.Errorf("counted %d times", calls[" often"])
	}
	if len(calls) < 5*maxPieces || len(c.now) > maxPieces || len(c.old) > maxPieces {
		t.Errorf("%d words counted, %d and %d remembered", len(calls), len(c.now), len(c.old))
	}
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
	if got := after.TotalAlloc - before.TotalAlloc; got > 40*maxBlock {
		t.Errorf("%d bytes take %d of memory, want %d at most", len(text), got, 40*maxBlock)
	}
	if blocks := len(text) / maxBlock; n < len(text)/2 || n > len(text)/2+blocks {
		t.Errorf("%d tokens", n)
	}
}

// letters is a number in letters.
func letters(n int) (s string) {
	for ; n > 0 || s == ""; n /= 26 {
		s += string(rune('a' + n%26))
	}
	return s
}

func BenchmarkCount(b *testing.B) {
	// As frequent as words are: half of the text is the 300 most frequent ones.
	var words strings.Builder
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 1)), 1.05, 2, 40_000)
	for range 200_000 {
		words.WriteString(" w" + letters(int(zipf.Uint64())))
	}
	for name, text := range map[string]string{
		"words": words.String(),
		"prose": strings.Repeat("The path of a message never changes, so neither does its depth. ", 1600),
		"a":     strings.Repeat("a", 100_000),
		"space": strings.Repeat(" ", 100_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				O200k().Count(text)
			}
		})
	}
}

// A word counts the same when it is new, when it was counted lately, and when
// it was counted so long ago that it is about to be forgotten.
func TestAgedWordsCount(t *testing.T) {
	t.Parallel()
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	const text = "an antidisestablishmentarian's coppice"
	want, err := codec.Count(text)
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{count: o200kBase().count}
	for i, age := range []string{"new", "counted lately", "about to be forgotten", "renewed"} {
		if age == "about to be forgotten" {
			for n := 0; len(c.old) == 0; n++ {
				c.learn(" w" + letters(n))
			}
		}
		if got := c.Count(text); got != want {
			t.Errorf("%d, %s: %d tokens, by the encoding %d", i, age, got, want)
		}
	}
}

// A piece that is long counts the same each time: it isn't remembered, as its
// count may not fit where counts are.
func TestLongPieceCounts(t *testing.T) {
	t.Parallel()
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	piece := strings.Repeat("qxzj", 500) // no word, and all of it one piece
	want, err := codec.Count(piece)
	if err != nil || want < 300 {
		t.Fatalf("%d tokens, %v: too few for this test", want, err)
	}
	c := &counter{count: o200kBase().count}
	for time := range 3 {
		if got := c.Count(piece); got != want {
			t.Errorf("time %d: %d tokens, by the encoding %d", time+1, got, want)
		}
	}
}
