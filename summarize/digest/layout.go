package digest

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/summarize/prompt"
)

// layOut writes the chosen items under their headings, in the conversation's
// order, and the index. Counts of parts may be less than that of the whole, so
// the whole is counted, and the items chosen last go until it fits.
func (p *picker) layOut() string {
	for {
		text := p.text()
		over := p.counter.Count(text) - p.limit
		if over <= 0 || len(p.chosen) == 0 {
			return text + p.index(text)
		}
		p.chosen = p.chosen[:max(len(p.chosen)-(over+3)/4, 0)]
	}
}

// text is the digest without its index. A line has what was chosen of one
// message. It names the speaker, unless that is the one of the line before.
func (p *picker) text() string {
	chosen := slices.Sorted(slices.Values(p.chosen)) // items stand in the conversation's order
	var b strings.Builder
	b.WriteString(p.intro())
	for s, heading := range headings {
		var last *item
		length := 0
		for _, i := range chosen {
			it := &p.items[i]
			if it.section != section(s) {
				continue
			}
			piece := it.piece()
			start := sameSpeaker
			switch {
			case last == nil:
				b.WriteString("\n" + heading)
				fallthrough
			case last.speaker != it.speaker || it.speaker == "":
				start = "\n- " + it.speaker + ": "
				if it.speaker == "" {
					start = "\n- "
				}
			}
			if last != nil && last.message == it.message && length+utf8.RuneCountInString(piece) <= p.length-len(ellipsis) {
				start = between(last, it)
				if it.context == last.context {
					piece = it.text
				}
			} else {
				length = 0
			}
			b.WriteString(start + piece)
			length += utf8.RuneCountInString(start + piece)
			last = it
		}
		if last != nil {
			b.WriteString("\n")
		}
	}
	return withoutTags(strings.TrimSuffix(b.String(), "\n"))
}

// withoutTags cleans lines of which the pieces are clean: two that come to stand beside
// each other may make one of the prompt's tags.
func withoutTags(lines string) string {
	all := strings.Split(lines, "\n")
	for i, line := range all {
		all[i] = prompt.Line(line)
	}
	return strings.Join(all, "\n")
}

// sameSpeaker begins a line of the speaker of the line before.
const sameSpeaker = "\n  "

// between is what stands between two sentences of one line.
func between(last, next *item) string {
	switch r, _ := utf8.DecodeLastRuneInString(last.text); {
	case next.order > last.order+1:
		return ellipsis
	case strings.ContainsRune(".!?…:;,", r) || isFullStop(r):
		return " "
	}
	return "; "
}
