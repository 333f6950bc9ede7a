package tokens

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
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
