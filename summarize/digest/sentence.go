package digest

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/summarize/prompt"
)

// A sentence is a piece of a message that says something by itself.
type sentence struct {
	text string
	code bool // within a code fence
	lead bool // a heading, or ends with a colon: says something only with what follows
}

// Bounds of a sentence, in bytes. A shorter one goes with the next ("No. It's
// the other one."), a longer one is cut where that hurts least.
const (
	minSentence = 12
	maxSentence = 600
)

// sentences cuts text into sentences, in any script: at line breaks, at the
// marks that end a sentence, and where there are none, as in Thai, at a space
// or, at worst, anywhere between two characters. It takes linear time.
func sentences(text string) iter.Seq[sentence] {
	return func(yield func(sentence) bool) {
		code := false
		emit := func(piece string) bool {
			piece = strings.TrimSpace(piece)
			if strings.HasPrefix(piece, "```") || strings.HasPrefix(piece, "~~~") {
				code = !code
				return true
			}
			lead := !code && isLead(piece)
			if piece = trimBullet(piece); piece == "" {
				return true
			}
			if lead {
				piece = strings.Trim(piece, "*_: ：")
			}
			return yield(sentence{piece, code, lead})
		}
		start := 0
		for start < len(text) {
			end := sentenceEnd(text, start)
			if !emit(text[start:end]) {
				return
			}
			start = end
		}
	}
}

// sentenceEnd is where the sentence that begins at start ends.
func sentenceEnd(text string, start int) int {
	soft := 0 // last place to cut at if need be
	for i := start; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if i-start > maxSentence {
			if soft > start {
				return soft
			}
			return max(prompt.StartOfCluster(text, i), start+1)
		}
		i += size
		switch {
		case prompt.IsLineBreak(r):
			if !wrapsOn(text[start:i-size], text[i:]) {
				return i
			}
			soft = i
		case isFullStop(r):
			i = skipClosers(text, i)
			if i-start >= minSentence {
				return i
			}
		case r == '.' || r == '!' || r == '?' || r == '…':
			i = skipClosers(text, i)
			if i-start >= minSentence && endsSentence(text[start:i], text[i:]) {
				return i
			}
		case r == ' ' || isPause(r):
			soft = i
		}
	}
	return len(text)
}

// isFullStop tells the marks that end a sentence without a space after them.
func isFullStop(r rune) bool {
	if r < utf8.RuneSelf {
		return false
	}
	switch r {
	case '。', '！', '？', '｡', '．', '؟', '۔', '।', '॥', '።', '፧', '။', '។', '៕', '᠃', '⁇', '⁈', '⁉', '‼':
		return true
	}
	return false
}

// isPause tells commas and the like.
func isPause(r rune) bool {
	switch r {
	case ',', ';', ':', '、', '，', '；', '：', '،', '؛', '၊', '·', '—':
		return true
	}
	return false
}

// skipClosers moves past more marks and the quotes and brackets that close.
func skipClosers(text string, i int) int {
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !isFullStop(r) && !strings.ContainsRune(`.!?…"')]}”’»›」』）】*_`, r) {
			return i
		}
		i += size
	}
	return i
}

// endsSentence tells a full stop from that of an abbreviation, a number or an
// address, by what stands around it.
func endsSentence(before, after string) bool {
	r, _ := utf8.DecodeRuneInString(after)
	if after == "" || r == '\n' {
		return true
	}
	if !unicode.IsSpace(r) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(after[:min(len(after), 16)], " \t"))
	if unicode.IsLower(next) {
		return false
	}
	if !strings.HasSuffix(before, ".") {
		return true
	}
	at := strings.LastIndexAny(before, " \t\n(") + 1
	word := before[at : len(before)-1]
	switch {
	case isDigits(word):
		return len(word) > 2 || !beforeOrdinal(before[:at])
	case utf8.RuneCountInString(word) <= 1:
		return false // an initial
	}
	return !abbreviations[strings.ToLower(word)]
}

var abbreviations = map[string]bool{
	"mr": true, "mrs": true, "ms": true, "dr": true, "prof": true, "st": true, "vs": true, "no": true, "nr": true, "fig": true,
	"e.g": true, "i.e": true, "z.b": true, "d.h": true, "bzw": true, "ca": true, "approx": true, "p.ej": true, "sr": true, "sra": true, "т.е": true, "г": true, "ул": true,
}

// beforeOrdinal tells whether a number after text is an ordinal: am 12. Mai.
func beforeOrdinal(text string) bool {
	text = strings.TrimRight(text, " ")
	switch strings.ToLower(text[strings.LastIndexAny(text, " \t\n(")+1:]) {
	case "am", "der", "den", "dem", "des", "die", "das", "zum", "vom", "bis", "im", "ab":
		return true
	}
	return false
}

func isDigits(word string) bool {
	return word != "" && strings.Trim(word, "0123456789") == ""
}

// wrapsOn tells a line that was only wrapped from one that ends: the sentence
// goes on in small letters.
func wrapsOn(before, after string) bool {
	if len(before) < 40 || strings.HasSuffix(before, ".") || strings.HasSuffix(before, ":") {
		return false
	}
	r, _ := utf8.DecodeRuneInString(after)
	return unicode.IsLower(r)
}

// isLead tells a heading, a line in bold letters, and a short line that ends
// with a colon.
func isLead(line string) bool {
	const most = 100
	switch {
	case len(line) > most:
		return false
	case strings.HasPrefix(line, "#"):
		mark, title, _ := strings.Cut(line, " ")
		return strings.Trim(mark, "#") == "" && strings.Trim(title, "*_: ：") != ""
	case strings.HasSuffix(strings.TrimRight(line, "*_"), ":"), strings.HasSuffix(line, "："):
		return strings.Trim(trimBullet(line), "*_: ：") != ""
	}
	line = trimBullet(line)
	return len(line) > 4 && strings.HasPrefix(line, "**") && strings.HasSuffix(line, "**") && !strings.Contains(line[2:len(line)-2], "**")
}

// isCode tells a line of code that stands outside of a fence, by how it ends.
func isCode(line string) bool {
	switch {
	case strings.HasSuffix(line, "{"), strings.HasSuffix(line, "};"), strings.HasSuffix(line, ");"), strings.HasSuffix(line, "});"), strings.HasSuffix(line, "],"), strings.HasSuffix(line, "},"):
		return true
	}
	return strings.HasPrefix(line, "\"") && strings.Contains(line, "\":")
}

// trimBullet takes off list marks, quote marks and heading marks.
func trimBullet(piece string) string {
	for range 4 {
		mark, rest, found := strings.Cut(piece, " ")
		switch {
		case !found && strings.Trim(piece, "-*•#>+–=_|~ ") == "":
			return ""
		case !found:
			return piece
		}
		number := strings.TrimRight(mark, ".)")
		if strings.Trim(mark, "-*•#>+–=_|~") != "" && (number == mark || !isDigits(number) || len(number) > 2) {
			return piece
		}
		piece = strings.TrimSpace(rest)
	}
	return piece
}
