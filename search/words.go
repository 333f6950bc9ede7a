package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A word is a run of letters and digits of a text, a part of a run in camelCase, two
// neighbouring letters of a script that writes no spaces, or an emoji.
type word struct {
	text     string // in lower case, composed
	from, to int    // its bytes in the text
	bigram   bool   // of a script without spaces, or an emoji: nothing to stem
	part     bool   // of the run before it
}

// unspaced are the scripts whose words nothing separates, and Korean, whose
// words carry their endings along. Their texts are taken apart into pairs of
// neighbouring letters.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// kind of a rune for taking a text apart.
type kind uint8

const (
	between kind = iota // separates words
	letter              // of a script with spaces between words, a digit, or a mark
	dense               // of a script without
	sign                // an emoji, without its colour and form
)

func kindOf(r rune) kind {
	switch {
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return letter
		}
		return between
	case r == 0xFE0E || r == 0xFE0F: // the form of the sign before
		return between
	case (0x2600 <= r && r < 0x27C0 || 0x2B00 <= r && r < 0x2C00 || 0x1F000 <= r && r < 0x1FB00) && unicode.Is(unicode.So, r):
		return sign
	case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != 'ー':
		return between
	case r >= 0x0E00 && (unicode.In(r, unspaced...) || r == 'ー'):
		return dense
	default:
		return letter
	}
}

// wordsOf takes a text apart.
func wordsOf(text string) []word {
	words := make([]word, 0, len(text)/5)
	start, in := 0, between
	for i, r := range text {
		k := kindOf(r)
		if in == dense && k == letter && unicode.IsMark(r) {
			k = dense // a vowel sign stays with its letter
		}
		if k == in {
			continue
		}
		words = addRun(words, text, start, i, in)
		start, in = i, k
	}
	return addRun(words, text, start, len(text), in)
}

func addRun(words []word, text string, from, to int, k kind) []word {
	switch run := text[from:to]; k {
	case letter:
		words = append(words, word{text: inLower(run), from: from, to: to})
		return addParts(words, run, from)
	case dense:
		return addBigrams(words, norm.NFC.String(run), from, to)
	case sign:
		for i, r := range run {
			to := from + i + utf8.RuneLen(r)
			words = append(words, word{text: text[from+i : to], from: from + i, to: to, bigram: true})
		}
		return words
	default:
		return words
	}
}

func inLower(run string) string {
	lower := strings.ToLower(run)
	if !isASCII(lower) {
		lower = strings.ReplaceAll(norm.NFKC.String(lower), "ß", "ss")
	}
	return lower
}

// maxCamel is the longest run that is taken apart: a longer one is no name, but
// data.
const maxCamel = 64

// addParts adds the parts of a run in camelCase: SaveUser has save and user,
// HTTPServer http and server.
func addParts(words []word, run string, from int) []word {
	if len(run) > maxCamel {
		return words
	}
	start := 0
	var before, beforeThat rune
	add := func(end int) {
		words = append(words, word{text: inLower(run[start:end]), from: from + start, to: from + end, part: true})
	}
	size := 0 // of before
	for i, r := range run {
		switch {
		case i == 0:
		case unicode.IsUpper(r) && unicode.IsLower(before):
			add(i)
			start = i
		case unicode.IsLower(r) && unicode.IsUpper(before) && unicode.IsUpper(beforeThat) && i-size > start:
			add(i - size)
			start = i - size
		}
		beforeThat, before, size = before, r, utf8.RuneLen(r)
	}
	if start > 0 {
		add(len(run))
	}
	return words
}

// addBigrams adds each two neighbouring letters of a run, or its only one.
func addBigrams(words []word, run string, from, to int) []word {
	whole := len(run) == to-from // else places in it are not those in the text
	before, last := -1, -1       // where the last two letters begin
	add := func(i, j int) {
		w := word{text: run[i:j], from: from, to: to, bigram: true}
		if whole {
			w.from, w.to = from+i, from+j
		}
		words = append(words, w)
	}
	for i, r := range run {
		if unicode.IsMark(r) && last >= 0 {
			continue // belongs to the letter before
		}
		if before >= 0 {
			add(before, i)
		}
		before, last = last, i
	}
	if before < 0 {
		before = last
	}
	add(before, len(run))
	return words
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// plainLetters are letters that people who lack their keys write as others, beside
// those with an accent.
var plainLetters = strings.NewReplacer("ø", "o", "ł", "l", "đ", "d", "ı", "i", "æ", "ae", "œ", "oe", "ð", "d", "þ", "th")

// withoutAccents takes the accents off Latin, Greek and Cyrillic letters. Marks
// of other scripts are vowels. A word of nothing but accents keeps them.
func withoutAccents(word string) string {
	if isASCII(word) {
		return word
	}
	first := firstLetter(word)
	if !unicode.In(first, unicode.Latin, unicode.Greek, unicode.Cyrillic) {
		return word
	}
	var b strings.Builder
	for _, r := range norm.NFD.String(word) {
		if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 {
		return word
	}
	return plainLetters.Replace(b.String())
}
