package chat

// How a message's JSON is read without decoding it: these functions find where
// values begin and end, and give them as they were written, in their order,
// repeated names included. encoding/json would forget all of that, and take
// "Role" for role. Except for Nesting they are for JSON that is known to be
// valid, as json.Valid tells; with anything else they may panic. None allocates
// but String, and nameOf where a name has escapes.

import (
	"bytes"
	"iter"
	"unicode/utf16"
	"unicode/utf8"
)

// membersOf gives the members of a valid object: the name with its quotes and
// escapes, for nameOf, and the value.
func membersOf(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		i := skipSpace(object, skipSpace(object, 0)+1)
		for object[i] != '}' {
			end := skipString(object, i)
			name := object[i:end]
			i = skipSpace(object, skipSpace(object, end)+1) // past the colon
			end = skipValue(object, i)
			if !yield(name, object[i:end]) {
				return
			}
			if i = skipSpace(object, end); object[i] == ',' {
				i = skipSpace(object, i+1)
			}
		}
	}
}

// Elements returns the elements of a valid JSON array, with their bytes as they
// stand.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := skipSpace(array, skipSpace(array, 0)+1)
		for array[i] != ']' {
			end := skipValue(array, i)
			if !yield(array[i:end]) {
				return
			}
			if i = skipSpace(array, end); array[i] == ',' {
				i = skipSpace(array, i+1)
			}
		}
	}
}

// nameOf reads a quoted name, however it is escaped.
func nameOf(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	return []byte(String(quoted))
}

// String reads a valid JSON string as encoding/json does: half a surrogate pair
// becomes U+FFFD.
func String(quoted []byte) string {
	text := quoted[1 : len(quoted)-1]
	at := bytes.IndexByte(text, '\\')
	if at < 0 {
		return string(text)
	}
	out := make([]byte, 0, len(text))
	for ; at >= 0; at = bytes.IndexByte(text, '\\') {
		out = append(out, text[:at]...)
		c := text[at+1]
		text = text[at+2:]
		if c != 'u' {
			out = append(out, unescaped[c])
			continue
		}
		r := hex4(text)
		text = text[4:]
		if utf16.IsSurrogate(r) {
			var low rune
			if len(text) >= 6 && text[0] == '\\' && text[1] == 'u' {
				low = hex4(text[2:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				text = text[6:]
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return string(append(out, text...))
}

// unescaped are the characters that JSON writes as a backslash and another one.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hex4 reads the four digits of a \u escape, which json.Valid has seen.
func hex4(digits []byte) (unit rune) {
	for _, c := range digits[:4] {
		unit <<= 4
		switch {
		case c <= '9':
			unit |= rune(c - '0')
		case c >= 'a':
			unit |= rune(c - 'a' + 10)
		default:
			unit |= rune(c - 'A' + 10)
		}
	}
	return unit
}

// Nesting returns how deep arrays and objects are nested. data need not be valid
// JSON.
func Nesting(data []byte) (deepest int) {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

func skipSpace(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r' {
		i++
	}
	return i
}

// skipString gives the index after the string that begins at i.
func skipString(b []byte, i int) int {
	for {
		i += 1 + bytes.IndexByte(b[i+1:], '"')
		backslashes := 0
		for b[i-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return i + 1
		}
	}
}

// skipValue gives the index after the value that begins at i and stands in an
// object or an array.
func skipValue(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 { // of what is around a number
				return i
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if i++; depth == 0 {
			return i
		}
	}
}
