package digest

import (
	"iter"
	"regexp"
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
	start, end int32 // in the item's piece
}

type kind uint8

const (
	kindShort kind = iota // a word of three letters of the Latin alphabet, two of another or one character: it says little
	kindWord
	kindPair // of characters, in a script that puts no spaces between words
	kindName
	kindNumber
	kindCode // address, path, identifier
	kindQuoted
	kindPhrase // of names and numbers, such as a date
)

// kindWeights are how much more than a word's the terms of a kind count.
var kindWeights = [...]float64{kindShort: 0.25, kindWord: 1, kindPair: 0.5, kindName: 1.5, kindNumber: 1.5, kindCode: 2, kindQuoted: 1.25, kindPhrase: 1.25}

// isFact tells what is to be kept exactly as it stands.
func (k kind) isFact() bool { return k >= kindName }

// A vocabulary numbers terms, whatever their capitals.
type vocabulary map[string]int32

func (v vocabulary) id(text string) int32 {
	text = strings.ToLower(text)
	id, known := v[text]
	if !known {
		id = int32(len(v))
		v[text] = id
	}
	return id
}

// terms finds the terms of a text. The capital of the first word says nothing
// where a sentence begins with it.
func (v vocabulary) terms(text string, first bool) (terms []term) {
	const longest = 200 // bytes
	add := func(k kind, start, end int) {
		word := text[start:end]
		if k == kindWord && (len(word) <= 3 || len(word) <= 4 && word[0] >= utf8.RuneSelf) {
			k = kindShort
		}
		if len(word) <= longest {
			terms = append(terms, term{v.id(word), k, int32(start), int32(end)})
		}
	}
	begin, end, parts := 0, 0, 0 // of names and numbers that stand side by side
	flush := func() {
		if parts > 1 {
			add(kindPhrase, begin, end)
		}
		parts = 0
	}
	for from, to := range fields(text) {
		bare := strings.TrimRight(strings.TrimLeft(text[from:to], "\"'`([{<*_"), "\"'`)]}>*_,;:.!?’")
		if bare == "" {
			continue
		}
		from += strings.Index(text[from:to], bare)
		after := text[from+len(bare) : to]
		to = from + len(bare)
		k := kindOf(bare)
		if k == kindWord && !first && isName(bare) {
			k = kindName
		}
		// Room B-17, 14 May 2026, Dr. Okafor; March 15, 2024
		gap := text[end:from]
		joins := gap == " " || gap == ". " || gap == ", " && len(bare) == 4 && strings.Trim(bare, "0123456789") == ""
		if k != kindName && k != kindNumber || !joins {
			flush()
		}
		if k == kindName || k == kindNumber {
			if parts == 0 {
				begin = from
			}
			end, parts = to, parts+1
		}
		if k != kindWord {
			add(k, from, to)
		}
		if k < kindCode {
			words(text[from:to], func(word kind, start, end int) {
				if k == kindWord || end-start < to-from {
					add(word, from+start, from+end)
				}
			})
		}
		first = strings.ContainsAny(after, "!?:]") || strings.Contains(after, ".") && len(bare) > 3
	}
	flush()
	if strings.ContainsAny(text, "\"`“„«「『《") {
		for _, at := range quoted.FindAllStringIndex(text, -1) {
			said := strings.TrimFunc(text[at[0]:at[1]], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) })
			if start := at[0] + strings.Index(text[at[0]:at[1]], said); said != "" && at[1]-at[0] <= 64 {
				add(kindQuoted, start, start+len(said))
			}
		}
	}
	return terms
}

var quoted = regexp.MustCompile("\"[^\"]+\"|“[^”]+”|„[^“]+“|«[^»]+»|`[^`]+`|「[^」]+」|『[^』]+』|《[^》]+》")

// fields gives the bounds of runs of characters without a space, or a change to a
// script without spaces.
func fields(text string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		start, glued := -1, false
		for i, r := range text + " " {
			gap, g := r == ' ' || r == '\n' || r == '\t', false
			if r >= utf8.RuneSelf {
				gap = unicode.IsSpace(r) || r != '’' && unicode.IsPunct(r)
				g = scriptOf(r) >= scriptGlued
			}
			if start >= 0 && (gap || g != glued) {
				if !yield(start, i) {
					return
				}
				start = -1
			}
			if !gap && start < 0 {
				start, glued = i, g
			}
		}
	}
}

// words finds the words of a field, and of a script without spaces the pairs of
// characters.
func words(field string, found func(k kind, start, end int)) {
	start, run := 0, scriptNone
	for i, r := range field + " " {
		script := scriptOf(r)
		switch {
		case script == scriptNoSpaces && run == script:
			found(kindPair, start, i+utf8.RuneLen(r))
		case script == run:
			continue
		case run == scriptSpaced, run == scriptGlued:
			found(kindWord, start, i)
		}
		start, run = i, script
	}
}

// A script tells how its characters make words.
type script uint8

const (
	scriptNone     script = iota // they make none
	scriptSpaced                 // between spaces
	scriptGlued                  // with others at their ends, as in Hebrew, Arabic, Korean and Katakana
	scriptNoSpaces               // of which no space tells where they end: Thai to Burmese, Khmer, Hiragana, Han
)

func scriptOf(r rune) script {
	switch {
	case r < utf8.RuneSelf:
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '\'' || r == '_' {
			return scriptSpaced
		}
		return scriptNone
	case r > 0x30a0 && r <= 0x30ff && r != '・':
		return scriptGlued
	case unicode.IsDigit(r) || r == '’':
		return scriptSpaced
	case r >= 0x0e00 && (r < 0x10a0 || r >= 0x1780 && r < 0x1800 || r >= 0x3040 && r < 0xa000 || r >= 0xf900 && r < 0xfb00 || r >= 0x20000 && r < 0x3ffff):
		return scriptNoSpaces
	case !unicode.IsLetter(r) && !unicode.Is(unicode.M, r):
		return scriptNone
	case r >= 0x0590 && r < 0x0700 || r >= 0xac00 && r < 0xd7b0 || r >= 0xfb50 && r < 0xfe00:
		return scriptGlued
	}
	return scriptSpaced
}

// code matches an address, a path, a file's name, or an identifier.
var code = regexp.MustCompile(`://|^www\.|.@.*\.|[/\\].*[/\\.]|^[.~].*[/\\].|\..*[/\\]|^.:[/\\]|..\.[a-z][a-z0-9]{0,4}$|[a-z][A-Z]|._.|^[A-Z]{3,}$|[@#=]..|..[@#=]`)

// kindOf tells what a field is. kindWord may be a name.
func kindOf(field string) kind {
	isLetter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= utf8.RuneSelf }
	isDigit := func(r rune) bool { return unicode.IsDigit(r) || r >= utf8.RuneSelf && unicode.Is(unicode.Sc, r) }
	switch {
	case (strings.TrimLeftFunc(field[1:], isLetter) != "" || scriptOf(rune(field[0])) == scriptNone) && code.MatchString(field):
		return kindCode
	case strings.ContainsFunc(field, isDigit):
		return kindNumber
	}
	return kindWord
}

// isName tells a word that begins with a capital.
func isName(field string) bool {
	r, size := utf8.DecodeRuneInString(field)
	next, _ := utf8.DecodeRuneInString(field[size:])
	return unicode.IsUpper(r) && unicode.IsLower(next)
}

// Terms returns what a text says something by, in small letters: its informative
// words and its facts. Facts are names, numbers, dates, addresses, paths,
// identifiers and quoted strings; the second value tells them. A term comes as often
// as it stands in the text.
func Terms(text string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		v := vocabulary{}
		for s := range sentences(text) {
			for _, t := range v.terms(s.text, true) {
				if t.kind == kindPhrase || t.kind == kindShort {
					continue
				}
				if !yield(strings.ToLower(s.text[t.start:t.end]), t.kind.isFact()) {
					return
				}
			}
		}
	}
}
