package digest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A mark is what a sentence must be kept for: a number, an address, a path, an
// identifier or a name, exactly as it stands.

// Weights of marks. A sentence counts its best ones, up to maxMarks in all.
const (
	markAddress    = 12 // URL, e-mail
	markPath       = 10
	markNumber     = 6
	markIdentifier = 5
	markName       = 4
	maxMarks       = 30
)

// maxMark is the longest mark that is remembered, in bytes.
const maxMark = 200

// marksOf finds the marks of a sentence, at most ten, and adds up their
// weights.
func marksOf(sentence string) (marks []string, weight int) {
	const most = 10
	names := 0
	first := true
	for i := 0; i < len(sentence) && len(marks) < most; {
		r, size := utf8.DecodeRuneInString(sentence[i:])
		if unicode.IsSpace(r) || r >= utf8.RuneSelf && hasNoWords(r) && !unicode.IsDigit(r) {
			i += size
			continue
		}
		end := fieldEnd(sentence, i)
		field := trimMark(sentence[i:end])
		if w := markWeight(field); w > 0 {
			weight += w
			if len(field) <= maxMark {
				marks = append(marks, field)
			}
		} else if !first && isName(field) && names < 3 {
			names++
		}
		first = false
		i = end
	}
	return marks, min(weight+names*markName, maxMarks)
}

// fieldEnd is where the run of characters without a space, or a change to a
// script without spaces, ends.
func fieldEnd(text string, i int) int {
	for j := i; j < len(text); {
		r, size := rune(text[j]), 1
		ends := r == ' ' || r == '\t' || r == '\n'
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[j:])
			ends = unicode.IsSpace(r) || hasNoWords(r) && !unicode.IsDigit(r) || isFullStop(r) || isPause(r)
		}
		if ends && j > i {
			return j
		}
		j += size
		if ends {
			return j
		}
	}
	return len(text)
}

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

// markWeight tells what kind of mark a field is; 0 for a mere word.
func markWeight(field string) int {
	if len(field) == 0 {
		return 0
	}
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
		return markAddress
	case at > 0 && strings.IndexByte(field[at:], '.') > 0:
		return markAddress
	case slashes > 0 && len(field) > 2 && (slashes > 1 || strings.ContainsAny(field[:1], ".~") || strings.ContainsRune(field, '.') || field[1] == ':'):
		return markPath
	case isFileName(field):
		return markPath
	case digits > 0:
		return markNumber
	case inner > 0 || upper >= 3 && upper == len(field) || signs > 0 && len(field) > 2:
		return markIdentifier
	}
	return 0
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
