package terminal

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
)

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"a few words more", 10, []string{"a few", "words more"}},
		{"one\n\ntwo\n", 10, []string{"one", "", "two"}},
		{"incomprehensible", 6, []string{"incomp", "rehens", "ible"}},
		{"https://example.com/a/b", 10, []string{"https://", "example.co", "m/a/b"}},
		{"日本語のテキスト", 7, []string{"日本語", "のテキ", "スト"}},
		{"👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧", 4, []string{"👩‍👩‍👧👩‍👩‍👧", "👩‍👩‍👧"}},
		{"日本", 1, []string{"日", "本"}}, // wider than the column, and yet there
		{"\ttab", 10, []string{"    tab"}},
	} {
		if got := wrap(tt.text, tt.width); !slices.Equal(got, tt.want) {
			t.Errorf("%q in %d columns: %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

// Both texts stand whole in their columns, and no line is too wide.
func TestColumns(t *testing.T) {
	t.Parallel()
	left := "The model said this.\n\n- One point, and then some more of it\n- Ein Punkt über Bäume"
	right := "別のモデルはこう言いました。日本語のテキストです。\x1b[31m"
	const width = 41
	lines := Columns(left, right, width)
	var a, b []string
	for _, line := range lines {
		if w := ansi.StringWidth(line); w > width {
			t.Errorf("%d columns: %q", w, line)
		}
		l, r, found := strings.Cut(line, "│")
		if !found {
			t.Errorf("no line between the columns: %q", line)
		}
		a, b = append(a, strings.TrimSpace(l)), append(b, strings.TrimSpace(r))
	}
	if got := strings.TrimSpace(strings.Join(a, " ")); got != strings.ReplaceAll(strings.ReplaceAll(left, "\n\n", "  "), "\n", " ") {
		t.Errorf("left: %q", got)
	}
	if got := strings.Join(b, ""); got != Printable(right) {
		t.Errorf("right: %q", got)
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text  string
		width int
		want  string
	}{
		{"", 10, ""},
		{"short", 10, "short"},
		{"a word too many", 10, "a word to…"},
		{"cut at a blank here", 10, "cut at a…"},
		{"two\nlines\tand\r\n tabs", 40, "two lines and tabs"},
		{"日本語のテキスト", 7, "日本語…"},
		{"👩‍👩‍👧‍👦👩‍👩‍👧‍👦", 3, "👩‍👩‍👧‍👦…"},
		{"\x1b]0;title\x07bell", 40, "�]0;title�bell"},
		{"left\u202eright", 40, "left�right"},
		{"anything", 0, ""},
	}
	for _, tt := range tests {
		if got := OneLine(tt.text, tt.width); got != tt.want {
			t.Errorf("OneLine(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		Count(0, "message"):       "0 messages",
		Count(1, "leaf"):          "1 leaf",
		Count(2, "leaf"):          "2 leaves",
		Count(3, "summary"):       "3 summaries",
		Count(1000, "message"):    "1,000 messages",
		Count(1234567, "message"): "1,234,567 messages",
		Thousands(-123456):        "-123,456",
		Thousands(-1234567):       "-1,234,567",
	}
	for got, want := range tests {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Columns of a table stand under each other, whatever their cells are wide,
// and only the last one is cut.
func TestTable(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	c := &Console{Writer: bufio.NewWriter(&b), Width: 40}
	c.Table([]Column{{Name: "NAME"}, {Name: "TOKENS", Right: true}, {Name: "TEXT", Cut: true}}, [][]string{
		{"日本語", "1", "one"},
		{"a longer name", "12,345,678", "a text that is longer than its line"},
		{"", "", ""},
	})
	c.Table([]Column{{Name: "A", Width: 3}, {Name: "B"}}, [][]string{{"1", "as long as it is, and no shorter than that"}})
	c.Flush()
	want := `NAME               TOKENS  TEXT
日本語                  1  one
a longer name  12,345,678  a text that is…

A    B
1    as long as it is, and no shorter than that
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Without a terminal progress is a line now and then, and nothing for what is
// done quickly.
func TestProgressLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := (&Console{Writer: bufio.NewWriter(&b), Errors: &b}).Progress("big.json", 4_000_000)
	p.Read(1_000_000)
	if b.Len() > 0 {
		t.Errorf("at once it says %q", b.String())
	}
	p.shown = time.Now().Add(-2 * progressInterval)
	p.Read(2_000_000)
	p.Read(3_000_000)
	p.End()
	if want := "big.json: read 2.0 MB of 4.0 MB, 50%\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
