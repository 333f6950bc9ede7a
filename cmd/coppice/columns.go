package main

import (
	"strings"

	"github.com/rivo/uniseg"
)

// columns lays two texts out beside each other, in lines of at most width
// columns.
func columns(left, right string, width int) []string {
	const between = " │ "
	half := (width - uniseg.StringWidth(between)) / 2
	a, b := wrapLines(printable(left), half), wrapLines(printable(right), half)
	lines := make([]string, max(len(a), len(b)))
	for i := range lines {
		l, r := "", ""
		if i < len(a) {
			l = a[i]
		}
		if i < len(b) {
			r = b[i]
		}
		lines[i] = strings.TrimRight(pad(l, half)+between+r, " ")
	}
	return lines
}

// wrapLines breaks text into lines of at most width columns, between words
// where it can.
func wrapLines(text string, width int) (lines []string) {
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(strings.TrimRight(text, "\n"), "\t", "    "), "\n") {
		line, used, before := "", 0, len(lines)
		for rest, state := paragraph, -1; rest != ""; {
			var word string
			word, rest, _, state = uniseg.FirstLineSegmentInString(rest, state)
			for {
				w := uniseg.StringWidth(strings.TrimRight(word, " "))
				if used+w <= width {
					break
				}
				if used > 0 {
					lines = append(lines, strings.TrimRight(line, " "))
					line, used = "", 0
					continue
				}
				head := cutColumns(word, width)
				lines = append(lines, head)
				word = word[len(head):]
			}
			line += word
			used += uniseg.StringWidth(word)
		}
		if line != "" || len(lines) == before {
			lines = append(lines, strings.TrimRight(line, " "))
		}
	}
	return lines
}

// cutColumns is as much of text as has at most width columns, and a character
// at least.
func cutColumns(text string, width int) string {
	end, used := 0, 0
	for rest, state := text, -1; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if end > 0 && used+w > width {
			break
		}
		used += w
		end += len(cluster)
	}
	return text[:end]
}
