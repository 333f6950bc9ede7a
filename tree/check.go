package tree

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/internal/rawjson"
)

// clip shortens a caller's text for an error message.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	for i := range s {
		if i >= most {
			return s[:i] + "…"
		}
	}
	return s
}

// checkObject refuses what Postgres could not store or index, and what would
// cost a reader its stack: anything but one JSON object of valid UTF-8, a NUL
// character, half a surrogate pair, and nesting over MaxNesting.
func checkObject(raw json.RawMessage, what string) error {
	switch {
	case !utf8.Valid(raw):
		return invalid("invalid_utf8", "", "The %s is not valid UTF-8.", what)
	case !json.Valid(raw):
		return invalid("invalid_json", "", "The %s is not valid JSON.", what)
	case bytes.TrimLeft(raw, " \t\r\n")[0] != '{':
		return invalid("wrong_type", "", "The %s must be a JSON object.", what)
	}
	return checkStrings(raw, what)
}

// checkStrings walks valid JSON once, minding nesting and escapes.
func checkStrings(raw []byte, what string) error {
	depth := 0
	inString := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case !inString && (c == '{' || c == '['):
			if depth++; depth > MaxNesting {
				return invalid("too_deep", "", "The %s nests arrays and objects more than %d deep.", what, MaxNesting)
			}
		case !inString && (c == '}' || c == ']'):
			depth--
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++
			if raw[i] != 'u' {
				continue
			}
			unit := rawjson.Hex4(raw[i+1:])
			i += 4
			switch {
			case unit == 0:
				return invalid("invalid_character", "", "The %s has a NUL character (\\u0000), which Postgres can't store. Take it out.", what)
			case unit >= 0xDC00 && unit < 0xE000:
				return invalid("invalid_character", "", "The %s has half a surrogate pair (\\u%04x). Write the whole character.", what, unit)
			case unit >= 0xD800 && unit < 0xDC00:
				if i+6 >= len(raw) || raw[i+1] != '\\' || raw[i+2] != 'u' || rawjson.Hex4(raw[i+3:])&^0x3FF != 0xDC00 {
					return invalid("invalid_character", "", "The %s has half a surrogate pair (\\u%04x). Write the whole character.", what, unit)
				}
				i += 6
			}
		}
	}
	return nil
}

// checkExtra checks metadata or settings and gives what to store: nil and null
// stand for none.
func checkExtra(raw json.RawMessage, field string) (json.RawMessage, error) {
	if len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return nil, nil
	}
	if len(raw) > MaxMetadataBytes {
		return nil, tooLarge("metadata_too_large", field, "It has %d bytes, and %d is the most.", len(raw), MaxMetadataBytes)
	}
	if err := checkObject(raw, field); err != nil {
		return nil, at(err, field)
	}
	return raw, nil
}

func checkTitle(title string) error {
	return checkText(title, "title", MaxTitleBytes)
}

// checkText checks a short text of one line.
func checkText(s, field string, most int) error {
	switch {
	case len(s) > most:
		return tooLarge(field+"_too_large", field, "It has %d bytes, and %d is the most.", len(s), most)
	case !utf8.ValidString(s):
		return invalid("invalid_utf8", field, "It is not valid UTF-8.")
	case strings.ContainsFunc(s, unicode.IsControl):
		return invalid("invalid_character", field, "It has a control character. Take it out.")
	}
	return nil
}
