package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

func TestWrapLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"short", 10, []string{"short"}},
		{"a few words more", 10, []string{"a few", "words more"}},
		{"words at the edge!", 12, []string{"words at the", "edge!"}},
		{"one\n\ntwo\n", 10, []string{"one", "", "two"}},
		{"incomprehensible", 6, []string{"incomp", "rehens", "ible"}},
		{"an incomprehensible word", 6, []string{"an", "incomp", "rehens", "ible", "word"}},
		{"https://example.com/a/b", 10, []string{"https://", "example.co", "m/a/b"}},
		{"日本語のテキスト", 7, []string{"日本語", "のテキ", "スト"}},
		{"👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧", 4, []string{"👩‍👩‍👧👩‍👩‍👧", "👩‍👩‍👧"}},
		{"日本", 1, []string{"日", "本"}}, // wider than the column, and yet there
		{"\ttab", 10, []string{"    tab"}},
	} {
		if got := wrapLines(tt.text, tt.width); !slices.Equal(got, tt.want) {
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
	lines := columns(left, right, width)
	var a, b []string
	for _, line := range lines {
		if w := uniseg.StringWidth(line); w > width {
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
	if got := strings.Join(b, ""); got != printable(right) {
		t.Errorf("right: %q", got)
	}
}
