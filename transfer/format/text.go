package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

// Joined joins the texts that are not empty.
func Joined(separator string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" }), separator)
}

// PartsText returns what a person sees of a content.
func PartsText(content json.RawMessage) string {
	if text, ok := StringOf(content); ok {
		return text
	}
	if len(content) > tree.MaxBodyBytes { // more parts than a message can have
		return ""
	}
	return chat.Shown(chat.ReadParts(content))
}

// LinesOf splits at every line ending that Markdown knows.
func LinesOf(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

// Fenced puts text into a fence longer than any run of backticks in it.
func Fenced(language, text string) string {
	fence := strings.Repeat("`", max(3, LongestRun(text, '`')+1))
	if text == "" {
		return fence + language + "\n" + fence + "\n"
	}
	return fence + language + "\n" + strings.Join(LinesOf(text), "\n") + "\n" + fence + "\n"
}

func LongestRun(text string, c byte) int {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// Compacted returns valid JSON without white space. An id that is derived from it
// doesn't depend on a file's indentation.
func Compacted(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// Replacement stands for bytes that aren't text: U+FFFD.
const Replacement = "\uFFFD"

// RepairText replaces what Postgres can't store as text in a piece of JSON: NUL
// characters, halves of surrogate pairs and invalid UTF-8. found names what was
// replaced. Where raw is sound, found is "" and sound is raw.
func RepairText(raw []byte) (sound []byte, found string) {
	var what []string
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte(Replacement))
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

func isLow(unit int) bool { return unit >= 0xDC00 && unit < 0xE000 }

// Shown is what a message says as text: names stand in for pictures and files, and a
// refusal stands behind the rest.
func Shown(m *chat.Message) string {
	text := chat.Shown(m.Parts)
	if m.Refusal != nil && *m.Refusal != "" {
		text = Joined("\n\n", text, *m.Refusal)
	}
	return text
}

// OneLine makes s fit for a title: control characters become spaces.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// Counted returns "1 file" or "2 files".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Named returns the kind of something and its name, where the name says more.
func Named(kind, between, name string) string {
	if name == "" || name == kind {
		return kind
	}
	return kind + between + name
}

// ClipRaw is Clip for raw, without a copy of all of it.
func ClipRaw(raw []byte) string { return Clip(string(raw[:min(len(raw), 100)])) }

// Clip shortens s for a note.
func Clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return CutEnd(s, most) + "…"
}

// EncodeObject is chat.MustMarshal for a map of JSON values.
func EncodeObject(members map[string]json.RawMessage) json.RawMessage {
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
		out.Write(append(chat.AppendString(nil, name), ':'))
		if value := members[name]; len(value) == 0 || json.Compact(out, value) != nil {
			out.WriteString("null")
		}
	}
	out.WriteByte('}')
	return out.Bytes()
}

// CutEnd shortens s to at most keep bytes, at the end of a character.
func CutEnd(s string, keep int) string {
	if len(s) <= keep {
		return s
	}
	for keep > 0 && !utf8.RuneStart(s[keep]) {
		keep--
	}
	return s[:keep]
}
