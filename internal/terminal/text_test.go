package terminal

import (
	"bufio"
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
)

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
		got := OneLine(tt.text, tt.width)
		check.That(t, got == tt.want, "OneLine(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
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
		check.Equal(t, "got", got, want)
	}
}

// Columns stand under each other, whatever their cells are wide. Only the last is cut.
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
	check.Equal(t, "got", b.String(), want)
}

// What is exported to a terminal can't steer it. A file gets every byte.
func TestExport(t *testing.T) {
	t.Parallel()
	const text = "a\x1b]52;c;eA==\x07b\u009b31mc\u202ed\r\nüé"
	for to, want := range map[bool]string{true: "a\ufffd]52;c;eA==\ufffdb\ufffd31mc\ufffdd \nüé", false: text} {
		var out bytes.Buffer
		c := &Console{Writer: bufio.NewWriter(&out), Terminal: to}
		w := c.Export()
		for i := range len(text) { // characters come in pieces
			check.Must(w.Write([]byte{text[i]}))(t)
		}
		if err := errors.Join(w.Close(), c.Flush()); err != nil || out.String() != want {
			t.Errorf("to a terminal %t: %q, %v; want %q", to, out.String(), err, want)
		}
	}
}

// Without a terminal progress is a line now and then, and nothing where it is quick.
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
	check.Equal(t, "got", b.String(), "big.json: read 2.0 MB of 4.0 MB, 50%\n")
}
