package tokens

import (
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

func BenchmarkCount(b *testing.B) {
	for name, text := range map[string]string{
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
