package llm

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// However a content is cut into pieces, the splitter takes it apart as if it came
// in one, and loses nothing of an answer that has no element of reasoning.
func TestSplitterDoesNotMindCuts(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{"<think>", "</think>", "<thinking>", "</thinking>", "<", "</", "thin", "k>", " ", "\n", "ä", "x", "reasoning>"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(word, 0, 12).Draw(t, "words"), "")
		split := func(pieces []string) (reasoning, content string) {
			var s splitter
			for _, piece := range pieces {
				r, c := s.add(piece)
				reasoning, content = reasoning+r, content+c
			}
			r, c := s.rest()
			return reasoning + r, content + c
		}
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut") // within a character, too
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		reasoning, content := split(pieces)
		if r, c := split([]string{text}); r != reasoning || c != content {
			t.Fatalf("%q gives %q and %q, whole it gives %q and %q", pieces, reasoning, content, r, c)
		}
		if space := rapid.SampledFrom([]int{0, 0, mostSpace, mostSpace + 1}).Draw(t, "space"); space > 0 {
			text = strings.Repeat(" ", space)
			if reasoning, content = split(strings.SplitAfter(text+"<think>a", "")); (space > mostSpace) != (content == text+"<think>a") || (space > mostSpace) != (reasoning == "") {
				t.Fatalf("after %d spaces: %q and %q", space, reasoning, content)
			}
			return
		}
		wantReasoning, wantContent := "", text
		for _, tag := range thinkTags {
			if rest, found := strings.CutPrefix(strings.TrimLeft(text, " \n"), "<"+tag+">"); found {
				wantReasoning, wantContent, _ = strings.Cut(rest, "</"+tag+">")
				wantContent = strings.TrimLeft(wantContent, " \n")
			}
		}
		if reasoning != wantReasoning || content != wantContent {
			t.Fatalf("%q gives %q and %q, want %q and %q", text, reasoning, content, wantReasoning, wantContent)
		}
	})
}
