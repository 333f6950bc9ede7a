package tree

import (
	"bytes"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// member gives the value of an object's member, nil for none; of several with
// that name the last, as encoding/json has it. The object is valid JSON. It
// steps over strings without decoding them: a context looks into every message
// of an assistant, and most are one long string.
func member(object []byte, name string) (found json.RawMessage) {
	for i := skipSpace(object, 0) + 1; i > 0; {
		var key, value []byte
		if key, value, i = nextMember(object, i); key != nil && string(nameOf(key)) == name {
			found = value
		}
	}
	return found
}

// nextMember gives the member of a valid object that begins at i, after the
// brace or a comma: its quoted name, nil where there is none, and its value. The
// next one begins at next, which is 0 after the last.
func nextMember(object []byte, i int) (key, value []byte, next int) {
	if i = skipSpace(object, i); object[i] == '}' {
		return nil, nil, 0
	}
	end := skipString(object, i)
	key = object[i:end]
	i = skipSpace(object, skipSpace(object, end)+1)
	end = skipValue(object, i)
	value = object[i:end]
	if i = skipSpace(object, end); object[i] == '}' {
		return key, value, 0
	}
	return key, value, i + 1
}

// nameOf reads a quoted name, however it is escaped.
func nameOf(key []byte) []byte {
	if bytes.IndexByte(key, '\\') < 0 {
		return key[1 : len(key)-1]
	}
	return []byte(readString(key))
}

// readString reads a valid JSON string, as encoding/json does: half a surrogate
// pair is U+FFFD.
func readString(quoted []byte) string {
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

// skipValue gives the index after the value that begins at i.
func skipValue(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 { // of the object around a number
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
