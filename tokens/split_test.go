package tokens

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"github.com/tiktoken-go/tokenizer"

	"github.com/coppice-chat/coppice/internal/check"
)

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

type fataler interface{ Fatalf(string, ...any) }

func compare(t fataler, tb testing.TB, text string) {
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
	if files < 20 {
		t.Errorf("%d files", files)
	}
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
		if want, err := codec.Count(text); err != nil || want != O200k().Count(text) {
			t.Fatalf("%q: %d tokens, by the encoding %d, %v", text, O200k().Count(text), want, err)
		}
	})
}
