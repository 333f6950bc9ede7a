package openai

import (
	"math"
	"runtime"
	"strings"
	"testing"
)

// allocates returns how many bytes f allocates, at least: it is called again, three
// times at most, while that is over most. What is counted is all that is allocated
// meanwhile, by what earlier tests left running too, so its callers are not parallel.
// encoding/json keeps buffers in a sync.Pool, which the race detector empties at
// random: a call then takes a few times the body more.
func allocates(most uint64, f func()) uint64 {
	least := uint64(math.MaxUint64)
	for tries := 0; tries < 3 && least > most; tries++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// TestLargeBodies holds that a large request takes memory in
// proportion to its bytes, whatever they are.
func TestLargeBodies(t *testing.T) {
	const size = MaxBody / 16
	fill := func(before, piece, after string) []byte {
		n := (size - len(before) - len(after)) / len(piece)
		return []byte(before + strings.TrimSuffix(strings.Repeat(piece, n), ",") + after)
	}
	for name, test := range map[string]struct {
		body []byte
		most uint64 // times the body
	}{
		"unknown members":   {fill(`{"model":"m","input":"hi"`, `,"a":1`, `}`), 1},
		"one text":          {fill(`{"model":"m","input":[{"role":"user","content":"`, `<3 `, `"}]}`), 12},
		"escapes":           {fill(`{"model":"m","input":[{"role":"user","content":"`, `\u00e9`, `"}]}`), 12},
		"items":             {fill(`{"model":"m","input":[`, `{"role":"user","content":"`+strings.Repeat("x", 400)+`"},`, `]}`), 12},
		"too many items":    {fill(`{"model":"m","input":[`, `{"role":"user","content":"x"},`, `]}`), 50},
		"parts":             {fill(`{"model":"m","input":[{"role":"user","content":[`, `{"type":"input_text","text":"`+strings.Repeat("x", 400)+`"},`, `]}]}`), 20},
		"a picture":         {fill(`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,`, `AAAA`, `"}]}]}`), 16},
		"members of a part": {fill(`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"x"`, `,"a":1`, `}]}]}`), 2},
		"tools":             {fill(`{"model":"m","input":"hi","tools":[`, `{"type":"web_search"},`, `]}`), 8},
		"include":           {fill(`{"model":"m","input":"hi","include":[`, `"x",`, `]}`), 2},
		"metadata":          {fill(`{"model":"m","input":"hi","metadata":{"a":"x"`, `,"b":"x"`, `}}`), 2},
	} {
		var err error
		taken := allocates(test.most*uint64(len(test.body)), func() { _, err = ParseCreate(test.body) })
		t.Logf("%s: %.2f times the body, %v", name, float64(taken)/float64(len(test.body)), err)
		if taken > test.most*uint64(len(test.body)) {
			t.Errorf("%s: %d bytes for a body of %d, which is over %d times as much", name, taken, len(test.body), test.most)
		}
	}
}
