package transfer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// replacement stands for what is no text: U+FFFD.
const replacement = "\uFFFD"

// mendText replaces what Postgres can't store as text in a piece of JSON: NUL
// characters, halves of surrogate pairs and invalid UTF-8. found names what
// there was, and is "" where raw is sound and comes back as it is.
func mendText(raw []byte) (sound []byte, found string) {
	var what []string
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte(replacement))
		what = append(what, "invalid UTF-8")
	}
	if !bytes.Contains(raw, []byte(`\u`)) {
		return raw, strings.Join(what, ", ")
	}
	var nul, half bool
	owned := len(what) > 0
	replace := func(i int) {
		if !owned {
			raw, owned = bytes.Clone(raw), true
		}
		copy(raw[i:], `\ufffd`)
	}
	// In valid JSON a backslash stands in strings only.
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' || i+6 > len(raw) {
			i++
			continue
		}
		unit := codeUnit(raw[i+2 : i+6])
		switch {
		case unit == 0:
			nul = true
			replace(i)
		case isHigh(unit) && i+12 <= len(raw) && raw[i+6] == '\\' && raw[i+7] == 'u' && isLow(codeUnit(raw[i+8:i+12])):
			i += 6
		case isHigh(unit) || isLow(unit):
			half = true
			replace(i)
		}
		i += 5
	}
	if nul {
		what = append(what, "NUL characters")
	}
	if half {
		what = append(what, "halves of surrogate pairs")
	}
	return raw, strings.Join(what, ", ")
}

// codeUnit reads four hexadecimal digits; -1 where they are none.
func codeUnit(digits []byte) int {
	unit := 0
	for _, c := range digits {
		unit <<= 4
		switch {
		case c >= '0' && c <= '9':
			unit |= int(c - '0')
		case c >= 'a' && c <= 'f':
			unit |= int(c-'a') + 10
		case c >= 'A' && c <= 'F':
			unit |= int(c-'A') + 10
		default:
			return -1
		}
	}
	return unit
}

func isHigh(unit int) bool { return unit >= 0xD800 && unit < 0xDC00 }
func isLow(unit int) bool  { return unit >= 0xDC00 && unit < 0xE000 }

// cutMiddle shortens s to about keep bytes, at the borders of characters, and
// puts a mark where something is missing.
func cutMiddle(s string, keep int) string {
	if len(s) <= keep {
		return s
	}
	head, tail := keep/2, len(s)-keep/2
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + fmt.Sprintf("\n[… %d bytes cut out by the import …]\n", tail-head) + s[tail:]
}

// oneLine makes s fit for a title: control characters become spaces.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// counted is "1 file" or "2 files".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// named is what something is and what it is called, where that says more.
func named(kind, between, name string) string {
	if name == "" || name == kind {
		return kind
	}
	return kind + between + name
}

// clipRaw is clip of raw, without copying all of it.
func clipRaw(raw []byte) string { return clip(string(raw[:min(len(raw), 100)])) }

// clip shortens s for a note.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return cutEnd(s, most) + "…"
}

// encode marshals v as it stands, where json.Marshal would escape <, > and &.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("transfer: encoding %T: %v", v, err)) // only a programmer's mistake: nothing here marshals itself
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// quote writes a string as encode does, between two other pieces of JSON, into
// one piece of memory of the size that it needs.
func quote(before, s, after string) json.RawMessage {
	out := append(append(make(json.RawMessage, 0, len(before)+quotedLen(s)+len(after)), before...), '"')
	for plain, escaped := range escapes(s) {
		out = append(append(out, plain...), escaped...)
	}
	return append(append(out, '"'), after...)
}

// quotedLen is how many bytes a string takes in JSON.
func quotedLen(s string) int {
	size := 2
	for plain, escaped := range escapes(s) {
		size += len(plain) + len(escaped)
	}
	return size
}

// escapes takes s apart: text that stands in JSON as it is, and what the
// character behind it is written as.
func escapes(s string) iter.Seq2[string, string] {
	return func(yield func(plain, escaped string) bool) {
		start := 0
		for i := 0; i < len(s); {
			escaped, width := "", 1
			switch c := s[i]; {
			case c >= utf8.RuneSelf:
				var r rune
				switch r, width = utf8.DecodeRuneInString(s[i:]); {
				case r == utf8.RuneError && width == 1:
					escaped = `\ufffd`
				case r == '\u2028' || r == '\u2029':
					escaped = fmt.Sprintf(`\u%04x`, r)
				}
			case c >= ' ' && c != '"' && c != '\\':
			default:
				escaped = asciiEscapes[c]
			}
			if escaped != "" {
				if !yield(s[start:i], escaped) {
					return
				}
				start = i + width
			}
			i += width
		}
		yield(s[start:], "")
	}
}

// asciiEscapes are what encoding/json writes for the characters that it
// escapes.
var asciiEscapes = func() (all [utf8.RuneSelf]string) {
	for c := range all {
		quoted := string(encode(string(rune(c))))
		all[c] = quoted[1 : len(quoted)-1]
	}
	return all
}()

// textPart is a content part of text.
func textPart(text string) json.RawMessage { return quote(`{"type":"text","text":`, text, "}") }

// encodeObject is encode of a map of JSON.
func encodeObject(members map[string]json.RawMessage) json.RawMessage {
	size := 2
	for name, value := range members {
		size += len(name) + len(value) + 4
	}
	out := bytes.NewBuffer(make([]byte, 0, size))
	out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(quote("", name, ":"))
		if value := members[name]; len(value) == 0 || json.Compact(out, value) != nil {
			out.WriteString("null")
		}
	}
	out.WriteByte('}')
	return out.Bytes()
}

// encodeList is encode of a list of JSON.
func encodeList(elements []json.RawMessage) json.RawMessage {
	size := 2
	for _, raw := range elements {
		size += len(raw) + 1
	}
	out := bytes.NewBuffer(make([]byte, 0, size))
	out.WriteByte('[')
	for i, raw := range elements {
		if i > 0 {
			out.WriteByte(',')
		}
		_ = json.Compact(out, raw) // valid, as all that is read
	}
	out.WriteByte(']')
	return out.Bytes()
}

// cutEnd shortens s to at most keep bytes, at the border of a character.
func cutEnd(s string, keep int) string {
	if len(s) <= keep {
		return s
	}
	for keep > 0 && !utf8.RuneStart(s[keep]) {
		keep--
	}
	return s[:keep]
}
