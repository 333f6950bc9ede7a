package tokens

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"github.com/tiktoken-go/tokenizer"
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

// A count's memory doesn't grow with a piece, which may be as long as a message.
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

// A count looks at its context after each block, and ends at the first look after its end.
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

// pack writes a vocabulary as unpack reads it.
func pack(t *testing.T, codec tokenizer.Codec) []byte {
	var data []byte
	for rank := uint(0); ; rank++ {
		token, err := codec.Decode([]uint{rank})
		if err != nil {
			break // behind the last rank
		}
		data = binary.AppendUvarint(data, uint64(len(token)))
		data = append(data, token...)
	}
	return zipped(t, data)
}

func zipped(t *testing.T, data []byte) []byte {
	var b bytes.Buffer
	w := check.Must(gzip.NewWriterLevel(&b, gzip.BestCompression))(t)
	check.Must(w.Write(data))(t)
	check.NoError(t, w.Close())
	return b.Bytes()
}

// The vocabulary is o200k_base, token for token.
func TestVocabularyIsTheEncodings(t *testing.T) {
	t.Parallel()
	codec := check.Must(tokenizer.Get(tokenizer.O200kBase))(t)
	if *check.Update {
		check.NoError(t, os.WriteFile("o200k_base.gz", pack(t, codec), 0o644))
		t.Skip("written; run the test again without -update")
	}
	v := o200kBase()
	check.Need(t, len(v.starts)-1 == 199_998, "%d tokens, want 199,998", len(v.starts)-1)
	for rank := range uint32(199_998) {
		want := check.Must(codec.Decode([]uint{uint(rank)}))(t)
		if got := v.token(rank); got != want || v.rank(got) != rank {
			t.Fatalf("token %d is %q and has rank %d, want %q", rank, got, v.rank(got), want)
		}
	}
	for _, unknown := range []string{"", "\x00\x01\x02\x03", strings.Repeat("long ", 100)} {
		check.Equal(t, "the rank of "+unknown, v.rank(unknown), none)
	}
}

// A piece is merged as the encoding merges it, whatever it is made of.
func TestMergesAsTheEncoding(t *testing.T) {
	t.Parallel()
	codec := check.Must(tokenizer.Get(tokenizer.O200kBase))(t)
	merges := func(t check.T, piece string) {
		t.Helper()
		got, _ := o200kBase().count(context.Background(), piece)
		check.Equal(t, piece, got, check.Must(codec.Count(piece))(t))
	}
	// Letters of one case are one piece, as are blanks and a run of signs.
	for _, piece := range []string{"a", "aa", "zqxj", strings.Repeat("a", 1000), strings.Repeat("ab", 501), strings.Repeat("=", 333), strings.Repeat(" ", 97), "日本語日本語"} {
		merges(t, piece)
	}
	rapid.Check(t, func(rt *rapid.T) {
		merges(rt, rapid.StringOfN(rapid.RuneFrom([]rune("abcdeinorstßé日")), 1, 200, -1).Draw(rt, "piece"))
	})
}

// A text that is no UTF-8 counts as if each bad run were a replacement mark.
func TestInvalidTextIsCounted(t *testing.T) {
	t.Parallel()
	got, want := O200k().Count("a\xff\xfeb"), O200k().Count("a\uFFFDb")
	check.That(t, got == want, "Count = %d, want %d", got, want)
}

func TestUnpackRefusesBrokenData(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"nothing": nil, "no gzip": []byte("o200k_base"), "cut off": packed[:1000],
		"no token": zipped(t, []byte("\x00")), "a length alone": zipped(t, []byte("\x02a")), "no length": zipped(t, []byte("\xff")),
	} {
		_, err := unpack(data)
		check.That(t, err != nil, "%s is read", name)
	}
}

// pattern is o200k_base's, as tiktoken has it. In a group of its own it is
// matched step by step: the program that package tokenizer has for the bare
// pattern skips U+007F, and splits some runs of blanks and newlines once more.
var pattern = regexp2.MustCompile(`(?:[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|`+
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|`+
	`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)`, regexp2.None)

func matches(t testing.TB, text string) (pieces []string) {
	m, err := pattern.FindStringMatch(text)
	for ; m != nil && err == nil; m, err = pattern.FindNextMatch(m) {
		pieces = append(pieces, m.String())
	}
	check.NoError(t, err)
	return pieces
}

func split(text string) (pieces []string) {
	for i := 0; i < len(text); {
		end := pieceEnd(text, i)
		pieces = append(pieces, text[i:end])
		i = end
	}
	return pieces
}

func compare(t check.T, tb testing.TB, text string) {
	got, want := split(text), matches(tb, text)
	for i, piece := range want {
		if i >= len(got) || got[i] != piece {
			from, to := max(0, i-2), i+3
			t.Fatalf("split into %q, and by the pattern into %q", got[min(from, len(got)):min(to, len(got))], want[from:min(to, len(want))])
		}
	}
}

// Characters of every class, alone and where their class decides how a piece
// goes on: those at the borders of their range, and some within.
func TestEveryClass(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for r := rune(1); r <= unicode.MaxRune; r++ {
		within := classify(r-1) == classify(r) && classify(r) == classify(r+1)
		if !utf8.ValidRune(r) || within && r > 0x250 && r%509 != 0 {
			continue
		}
		for _, around := range []string{"%", "a%", "A%", "%a", "A%b", " %", "  % ", "'%", "x'%e", "1%2", "-%/"} {
			b.WriteString(strings.ReplaceAll(around, "%", string(r)))
			b.WriteByte('\n')
		}
		compare(t, t, b.String())
		b.Reset()
	}
}

// Real text counts as the encoding itself counts it, from the first time on.
func TestCountsAsTheEncoding(t *testing.T) {
	t.Parallel()
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	check.NoError(t, err)
	files := 0
	err = filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && slices.Contains([]string{"node_modules", ".git"}, entry.Name()) {
				return filepath.SkipDir
			}
			return err
		}
		if !slices.Contains([]string{".md", ".jsonl", ".sql", ".json"}, filepath.Ext(name)) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil || len(text) > 1<<20 {
			return err
		}
		files++
		want, err := codec.Count(string(text))
		if err != nil {
			return err
		}
		for range 2 {
			check.Equal(t, name, O200k().Count(string(text)), want)
		}
		return nil
	})
	check.NoError(t, err)
	check.That(t, files >= 20, "%d files", files)
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"Don't SHOUT, it'S  late.\r\n\r\n  x=1234;//\n", "日本語ＡＢＣ\u0301 'ſ", "\t\tfunc main() {\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "")
		compare(t, t, text)
		codec := check.Must(tokenizer.Get(tokenizer.O200kBase))(t)
		if strings.ContainsRune(text, 0x7f) {
			return
		}
		check.Equal(t, text, O200k().Count(text), check.Must(codec.Count(text))(t))
	})
}
