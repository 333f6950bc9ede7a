package tokens

import (
	"unicode"
	"unicode/utf8"
)

// o200k_base splits text into pieces, and each piece into tokens. The pieces
// are those that this pattern matches, one after another:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
//
// A regular expression that backtracks takes ten times as long as the
// functions below, on every message that is stored. The tests compare the two.

// A class is what the pattern asks about a character.
type class uint8

const (
	upper   class = 1 << iota // Lu, Lt
	lower                     // Ll
	other                     // Lm, Lo, M: goes with upper and with lower case
	mark                      // M, which is also no letter
	number                    // N
	space                     // \s
	newline                   // \r and \n, which are spaces
)

const (
	word      = upper | lower | other
	unletter  = upper | lower | number // with other, unless that is a mark
	beginning = upper | other
	ending    = lower | other
)

var ascii = func() (out [utf8.RuneSelf]class) {
	for r := range out {
		out[r] = classify(rune(r))
	}
	return out
}()

func classify(r rune) class {
	switch {
	case unicode.Is(unicode.Ll, r):
		return lower
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return upper
	case unicode.In(r, unicode.Lm, unicode.Lo):
		return other
	case unicode.Is(unicode.M, r):
		return other | mark
	case unicode.Is(unicode.N, r):
		return number
	case r == '\r' || r == '\n':
		return space | newline
	case unicode.IsSpace(r):
		return space
	}
	return 0
}

// at gives the class of the character at i, and its length; 0 at the end.
func at(s string, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return ascii[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return classify(r), n
}

// symbol tells whether a class is neither letter nor number: what may stand
// before a word, if it is no newline.
func (c class) symbol() bool {
	return c&unletter == 0 && (c&other == 0 || c&mark != 0)
}

// pieceEnd is where the piece ends that begins at i, which is inside s.
func pieceEnd(s string, i int) int {
	c, n := at(s, i)
	if c.symbol() && c&newline == 0 {
		// A mark before upper case alone is a word by itself: the pattern's first
		// line is tried as a whole before the second.
		if end, capitals := wordEnd(s, i+n); end > 0 && !(capitals && c&mark != 0) {
			return end
		}
	}
	if c&word != 0 {
		end, _ := wordEnd(s, i)
		return end
	}
	switch {
	case c&number != 0:
		return numberEnd(s, i)
	case s[i] == ' ':
		if next, n := at(s, i+1); n > 0 && next&space == 0 && next.symbol() {
			return symbolsEnd(s, i+1)
		}
		return spaceEnd(s, i)
	case c&space != 0:
		return spaceEnd(s, i)
	}
	return symbolsEnd(s, i)
}

// wordEnd is where a word ends that begins at i, 0 if none does. A word is
// upper case and then lower case; where no lower case follows, upper case up to
// the last character of neither case; where there is none either, capitals
// alone.
func wordEnd(s string, i int) (end int, capitals bool) {
	j, lastOther := i, 0
	for {
		c, n := at(s, j)
		if c&ending == lower {
			for c&ending != 0 {
				j += n
				c, n = at(s, j)
			}
			return contractionEnd(s, j), false
		}
		if c&beginning == 0 {
			break
		}
		j += n
		if c&other != 0 {
			lastOther = j
		}
	}
	switch {
	case lastOther > 0:
		return contractionEnd(s, lastOther), false
	case j > i:
		return contractionEnd(s, j), true
	}
	return 0, false
}

// contractionEnd takes what may follow a word's apostrophe along.
func contractionEnd(s string, i int) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	switch s[i+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if i+2 < len(s) && s[i+2]|0x20 == 'e' {
			return i + 3
		}
	case 'l':
		if i+2 < len(s) && s[i+2]|0x20 == 'l' {
			return i + 3
		}
	}
	if r, n := utf8.DecodeRuneInString(s[i+1:]); r == 'ſ' { // an s, case aside
		return i + 1 + n
	}
	return i
}

func numberEnd(s string, i int) int {
	for range 3 {
		c, n := at(s, i)
		if c&number == 0 {
			break
		}
		i += n
	}
	return i
}

// symbolsEnd ends a run of symbols, and the newlines and slashes after it.
func symbolsEnd(s string, i int) int {
	for {
		c, n := at(s, i)
		if n == 0 || c&space != 0 || !c.symbol() {
			break
		}
		i += n
	}
	for i < len(s) && (s[i] == '\r' || s[i] == '\n' || s[i] == '/') {
		i++
	}
	return i
}

// spaceEnd ends a run of spaces: after its last newline, else before the last
// space if a word may begin with that one.
func spaceEnd(s string, i int) int {
	end, lastNewline, last := i, 0, i
	for {
		c, n := at(s, end)
		if c&space == 0 {
			break
		}
		last = end
		end += n
		if c&newline != 0 {
			lastNewline = end
		}
	}
	switch {
	case lastNewline > 0:
		return lastNewline
	case end == len(s) || last == i:
		return end
	}
	return last
}
