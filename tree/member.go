package tree

import (
	"bytes"
	"encoding/json"
)

// member gives the value of an object's member, nil for none; of several with
// that name the last, as encoding/json has it. The object is valid JSON. It
// steps over strings without decoding them: a context looks into every message
// of an assistant, and most are one long string.
func member(object []byte, name string) (found json.RawMessage) {
	for i := skipSpace(object, 0) + 1; ; i++ { // after the brace or a comma
		i = skipSpace(object, i)
		if object[i] == '}' {
			return found
		}
		end := skipString(object, i)
		key := object[i:end]
		i = skipSpace(object, skipSpace(object, end)+1)
		end = skipValue(object, i)
		if isName(key, name) {
			found = object[i:end]
		}
		if i = skipSpace(object, end); object[i] == '}' {
			return found
		}
	}
}

// isName tells whether a quoted key is a name, however it is escaped.
func isName(key []byte, name string) bool {
	if bytes.IndexByte(key, '\\') < 0 {
		return string(key[1:len(key)-1]) == name
	}
	var plain string
	return json.Unmarshal(key, &plain) == nil && plain == name
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
