package digest

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A term is what a sentence says something by: an informative word, or a fact.
// Facts are names, numbers, addresses, paths, identifiers and quoted strings,
// exactly as they stand.
type term struct {
	id         int32
	kind       kind
	short      bool  // it has too few letters to say much
	start, end int32 // in the item's piece
}

type kind uint8

const (
	kindNone kind = iota
	kindWord
	kindPair // of characters, in a script that puts no spaces between words
	kindName
	kindNumber
	kindIdentifier
	kindPath
	kindAddress // URL, e-mail
	kindQuoted
	kindPhrase // of names and numbers, such as a date
)

// kindWeights are how much more than a word's the terms of a kind count.
var kindWeights = [...]float64{
	kindWord: 1, kindPair: 0.5, kindName: 1.5, kindNumber: 1.5, kindIdentifier: 1.5, kindPath: 2, kindAddress: 2.5, kindQuoted: 1.25, kindPhrase: 1.25,
}

// isFact tells what is to be kept exactly as it stands.
func (k kind) isFact() bool { return k >= kindName }

// maxMark is the longest fact that is remembered, in bytes.
const maxMark = 200

// A vocabulary numbers terms, whatever their capitals.
type vocabulary map[uint64]int32

func (v vocabulary) id(text string) int32 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	hash := uint64(offset)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= utf8.RuneSelf {
			for _, r := range text[i:] {
				hash = (hash ^ uint64(unicode.ToLower(r))) * prime
			}
			break
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		hash = (hash ^ uint64(c)) * prime
	}
	id, known := v[hash]
	if !known {
		id = int32(len(v))
		v[hash] = id
	}
	return id
}

// terms finds the terms of a sentence.
func (v vocabulary) terms(text string) []term { return v.termsOf(text, true) }

// termsOf finds the terms of a text. The capital of the first word says nothing
// where a sentence begins with it.
func (v vocabulary) termsOf(text string, first bool) (terms []term) {
	add := func(k kind, start, end int) {
		if end-start <= maxMark {
			terms = append(terms, term{v.id(text[start:end]), k, isShort(text[start:end]), int32(start), int32(end)})
		}
	}
	var phrase struct { // names and numbers that stand side by side
		start, end, fields int
		first              bool // it begins with the first word, whose capital says nothing
	}
	flush := func() {
		if phrase.fields > 1 {
			add(kindPhrase, phrase.start, phrase.end)
		}
		phrase.fields = 0
	}
	for f := range fields(text) {
		bare := text[f.start:f.end]
		k := markKind(bare)
		if k == kindNone && isName(bare) && !first {
			k = kindName
		}
		if phrase.fields == 1 && phrase.first && k != kindNumber {
			phrase.fields = 0
		}
		if phrase.fields == 0 && first && k == kindNone && isName(bare) { // of a date, perhaps
			phrase.start, phrase.end, phrase.fields, phrase.first = f.start, f.end, 1, true
		} else if k == kindName || k == kindNumber || k == kindIdentifier {
			if phrase.fields > 0 && !joins(text[phrase.end:f.start], bare) {
				flush()
			}
			if phrase.fields == 0 {
				phrase.start, phrase.first = f.start, false
			}
			phrase.end, phrase.fields = f.end, phrase.fields+1
		} else {
			flush()
		}
		if k != kindNone {
			add(k, f.start, f.end)
		}
		if k < kindPath {
			words(text, f.start, f.end, func(start, end int) {
				if k == kindNone || end-start < f.end-f.start {
					add(kindWord, start, end)
				}
			}, func(start, end int) { add(kindPair, start, end) })
		}
		first = f.opens
	}
	flush()
	quotes(text, func(start, end int) { add(kindQuoted, start, end) })
	return terms
}

// isShort tells a word of three letters or less; of two in other alphabets than the
// Latin one, as a letter of Arabic tells more. A syllable of Korean is no letter.
func isShort(word string) bool {
	const letters, others = 3, 2
	return len(word) <= letters || len(word) <= 2*others && word[0] >= utf8.RuneSelf && utf8.RuneCountInString(word) <= others
}

// joins tells whether a name or number belongs to the one before the gap: Room
// B-17, 14 May 2026, March 15, 2024.
func joins(gap, next string) bool {
	return gap == " " || (gap == ", " || gap == ". ") && isDigits(next) && len(next) == 4 || gap == ". " && isName(next)
}

// words finds the words between start and end, and of a script without words
// the pairs of characters.
func words(text string, start, end int, word, pair func(start, end int)) {
	for i := start; i < end; {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case isKatakana(r): // names, mostly, and terms
			at := i
			for i < end && isKatakana(r) {
				i += size
				r, size = utf8.DecodeRuneInString(text[i:])
			}
			word(at, i)
		case r >= utf8.RuneSelf && hasNoSpaces(r):
			if next, more := utf8.DecodeRuneInString(text[i+size:]); i+size < end && hasNoSpaces(next) {
				pair(i, i+size+more)
			}
			i += size
		case isWordRune(r) && r != '\'':
			at := i
			for i < end && isWordRune(r) && !(r >= utf8.RuneSelf && hasNoSpaces(r)) {
				i += size
				r, size = utf8.DecodeRuneInString(text[i:])
			}
			word(at, i)
		default:
			i += size
		}
	}
}

// hasNoSpaces tells the scripts that put no spaces between words.
func hasNoSpaces(r rune) bool {
	return hasNoWords(r) && r >= 0x0e00 && (r < 0xac00 || r >= 0xd7b0) && (r < 0xfb00 || r >= 0x20000)
}

func isKatakana(r rune) bool { return r > 0x30a0 && r <= 0x30ff && r != '・' }

// quoteMarks close what they open.
var quoteMarks = map[rune]rune{'"': '"', '“': '”', '„': '“', '«': '»', '`': '`', '「': '」', '『': '』', '《': '》'}

// quotes finds short quoted strings.
func quotes(text string, found func(start, end int)) {
	const most = 60
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		} else if r != '"' && r != '`' {
			i++
			continue
		}
		i += size
		end, opens := quoteMarks[r]
		if !opens {
			continue
		}
		if n := strings.IndexRune(text[i:min(i+most, len(text))], end); n > 1 {
			said := strings.TrimRightFunc(text[i:i+n], func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(".,;:!?", r) })
			if bare := strings.TrimLeftFunc(said, unicode.IsSpace); bare != "" {
				found(i+len(said)-len(bare), i+len(said))
			}
			i += n + utf8.RuneLen(end)
		}
	}
}

// A field is a run of characters without a space, without the punctuation
// around it.
type field struct {
	start, end int
	opens      bool // a sentence or a part of one ends with it
}

// fields gives the fields of a text.
func fields(text string) iter.Seq[field] {
	return func(yield func(field) bool) {
		for i := 0; i < len(text); {
			r, size := rune(text[i]), 1
			if r >= utf8.RuneSelf {
				r, size = utf8.DecodeRuneInString(text[i:])
			}
			if unicode.IsSpace(r) {
				i += size
				continue
			}
			end := fieldEnd(text, i)
			bare := trimMark(text[i:end])
			start := i + strings.Index(text[i:end], bare)
			if bare != "" && !yield(field{start, start + len(bare), opens(bare, text[start+len(bare):end])}) {
				return
			}
			i = end
		}
	}
}

// opens tells whether after a word and its punctuation a capital says nothing.
func opens(word, punctuation string) bool {
	return strings.ContainsAny(punctuation, "!?:]") || strings.Contains(punctuation, ".") && len(word) > 3
}

// marksOf lists the facts of a sentence that are to be kept when it is cut
// short: at most ten, and names are none.
func marksOf(sentence string) (marks []string) {
	const most = 10
	for f := range fields(sentence) {
		if bare := sentence[f.start:f.end]; len(marks) < most && len(bare) <= maxMark && markKind(bare) != kindNone {
			marks = append(marks, bare)
		}
	}
	return marks
}

// fieldEnd is where the run of characters without a space, or a change to a
// script without spaces, ends.
func fieldEnd(text string, i int) int {
	first, size := utf8.DecodeRuneInString(text[i:])
	glued := isGlued(first)
	if first >= utf8.RuneSelf && (isFullStop(first) || isPause(first)) {
		return i + size
	}
	for j := i + size; j < len(text); {
		r, size := rune(text[j]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[j:])
			if isFullStop(r) || isPause(r) || unicode.IsSpace(r) {
				return j
			}
		}
		if r == ' ' || r == '\t' || r == '\n' || isGlued(r) != glued {
			return j
		}
		j += size
	}
	return len(text)
}

// isGlued tells characters that no space parts from a number or a name.
func isGlued(r rune) bool { return r >= utf8.RuneSelf && hasNoWords(r) && !unicode.IsDigit(r) }

// trimMark takes off the punctuation around a field.
func trimMark(field string) string {
	field = strings.TrimLeft(field, "\"'`([{<*_“‘«„")
	for field != "" {
		r, size := utf8.DecodeLastRuneInString(field)
		if !strings.ContainsRune("\"'`)]}>*_,;:.!?…”’»“", r) || r == ')' && strings.Contains(field, "(") {
			return field
		}
		field = field[:len(field)-size]
	}
	return field
}

// markKind tells what kind of fact a field is; kindNone for a word or a name.
func markKind(field string) kind {
	var digits, upper, inner, slashes, signs int
	lower := false
	for i := range len(field) {
		switch c := field[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'A' && c <= 'Z':
			upper++
			if lower {
				inner++ // camelCase
			}
		case c == '_' && i > 0 && i < len(field)-1:
			inner++
		case c == '/' || c == '\\':
			slashes++
		case c == '@' || c == '#' || c == '=' || c == '%' || c == '$':
			signs++
		case c >= utf8.RuneSelf:
			if r, _ := utf8.DecodeRuneInString(field[i:]); unicode.IsDigit(r) || unicode.Is(unicode.Sc, r) {
				digits++
			}
		}
		lower = field[i] >= 'a' && field[i] <= 'z'
	}
	switch at := strings.IndexByte(field, '@'); {
	case strings.Contains(field, "://") || strings.HasPrefix(field, "www."):
		return kindAddress
	case at > 0 && strings.IndexByte(field[at:], '.') > 0:
		return kindAddress
	case slashes > 0 && len(field) > 2 && (slashes > 1 || strings.ContainsAny(field[:1], ".~") || strings.ContainsRune(field, '.') || field[1] == ':'):
		return kindPath
	case isFileName(field):
		return kindPath
	case digits > 0:
		return kindNumber
	case inner > 0 || upper >= 3 && upper == len(field) || signs > 0 && len(field) > 2:
		return kindIdentifier
	}
	return kindNone
}

// isFileName tells main.go from the end of a sentence without a space.
func isFileName(field string) bool {
	dot := strings.LastIndexByte(field, '.')
	if dot < 1 || len(field)-dot < 2 || len(field)-dot > 6 {
		return false
	}
	for i := dot + 1; i < len(field); i++ {
		if c := field[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return field[dot+1] >= 'a' && dot > 1
}

// isName tells a word that begins with a capital where none is due.
func isName(field string) bool {
	r, size := utf8.DecodeRuneInString(field)
	if !unicode.IsUpper(r) || len(field) == size {
		return false
	}
	next, _ := utf8.DecodeRuneInString(field[size:])
	return unicode.IsLower(next)
}
