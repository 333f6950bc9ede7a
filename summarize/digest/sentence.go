package digest

import (
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/summarize/prompt"
)

// A sentence is a piece of a message that says something by itself.
type sentence struct {
	text string
	code bool // within a code fence
	lead bool // a short line that tells what those below it are about
	cut  bool // it went on
}

// Bounds of a sentence, in bytes. A shorter one goes with the next ("No. It's the other
// one."), the end of a line with the one before. A longer one is cut where that hurts
// least.
const (
	minSentence = 12
	maxSentence = 600
	maxLead     = 60
)

// sentences cuts text into sentences, in any script: at line breaks, at the
// marks that end a sentence, and where there are none, as in Thai, at a space
// or, at worst, anywhere between two characters. It takes linear time.
func sentences(text string) iter.Seq[sentence] {
	return func(yield func(sentence) bool) {
		code := false
		for len(text) > 0 {
			end, cut := sentenceEnd(text)
			piece := strings.TrimSpace(text[:end])
			text = text[end:]
			if strings.HasPrefix(piece, "```") || strings.HasPrefix(piece, "~~~") {
				code = !code
				continue
			}
			bare := piece[len(bullet.FindString(piece)):]
			lead := !code && len(piece) <= maxLead && leads.MatchString(piece)
			if lead {
				bare = strings.Trim(bare, "*_: ：")
			}
			if bare != "" && !yield(sentence{bare, code, lead, cut}) {
				return
			}
		}
	}
}

var (
	// bullet matches list marks, quote marks and heading marks.
	bullet = regexp.MustCompile(`^(?:(?:[-*•#>+–=_|~]+|\d{1,2}[.)])(?:\s+|$))+`)
	// leads matches a heading, what ends with a colon, and what is in bold letters.
	leads = regexp.MustCompile(`^#+ |[:：][*_]*$|^(?:[-*>] |\d+\. )?\*\*[^*]+\*\*$`)
	// unfinished matches what a full stop ends no sentence after: an initial, an
	// abbreviation, a German ordinal.
	unfinished = regexp.MustCompile(`(?i)(?:^|[\s(])(?:\pL|mrs?|ms|dr|prof|st|vs|no|nr|fig|e\.g|i\.e|z\.b|d\.h|bzw|ca|approx|p\.ej|sra?|т\.е|ул|(?:am|de[rnms]|die|das|zum|vom|bis|im|ab) \d{1,2})\.$`)
)

// The marks that end a sentence without a space after them, those that need one, and
// those that stand behind either.
const (
	fullStops = "。！？｡．؟۔।॥።፧။។៕᠃⁇⁈⁉‼"
	stops     = ".!?…"
	closers   = fullStops + stops + `"')]}”’»›」』）】*_` + "`"
)

// sentenceEnd is where the first sentence ends, or is cut as it is too long.
func sentenceEnd(text string) (end int, cut bool) {
	const wrapped = 40 // bytes of a line that an editor may have wrapped
	soft, line := 0, 0 // the last place to cut at if need be, and where the line begins
	for i := 0; i < len(text); {
		if i > maxSentence {
			if soft == 0 {
				soft = max(prompt.StartOfCluster(text, i), 1)
			}
			return soft, true
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		next, _ := utf8.DecodeRuneInString(text[i:])
		switch {
		case prompt.IsLineBreak(r):
			if !unicode.IsLower(next) || i-line < wrapped {
				return i, false
			}
			soft, line = i, i
		case r >= utf8.RuneSelf && strings.ContainsRune(fullStops, r), strings.ContainsRune(stops, r):
			i = len(text) - len(strings.TrimLeft(text[i:], closers))
			if i >= minSentence && !isTail(text[i:]) && (!strings.ContainsRune(stops, r) || endsSentence(text[:i], text[i:])) {
				return i, false
			}
		case r == ' ' || unicode.IsPunct(r):
			soft = i
		}
	}
	return len(text), false
}

// isTail tells the rest of a line that is too short for a sentence.
func isTail(rest string) bool {
	line, _, ends := strings.Cut(rest[:min(len(rest), minSentence)], "\n")
	r, _ := utf8.DecodeRuneInString(strings.TrimSpace(line))
	return (ends || len(rest) < minSentence) && unicode.IsLetter(r)
}

// endsSentence tells a full stop from that of an abbreviation, a number or an
// address, by what stands around it.
func endsSentence(before, after string) bool {
	const longest = 12 // bytes of what is no end
	space, _ := utf8.DecodeRuneInString(after)
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(after[:min(len(after), 16)], " \t"))
	return after == "" || unicode.IsSpace(space) && !unicode.IsLower(next) &&
		!(strings.HasSuffix(before, ".") && unfinished.MatchString(before[max(0, len(before)-longest):]))
}
