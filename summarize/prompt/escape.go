package prompt

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What people, models and tools wrote is shown to a model between tags of
// ours, and must not be able to end or imitate them. escapeText sees to it. It
// changes a character only where it must, because names, paths and code are to
// be copied from the text as they are, and it can be undone.
//
// A character that is changed stands as ⟦U+003C⟧. The brackets themselves are
// always changed, so none in an escaped text is the author's.
const (
	escapeOpen  = '⟦'
	escapeClose = '⟧'
)

// escapeText makes text safe between tags:
//
//   - what a reader can't see or what moves the text around it is shown: control
//     characters, ANSI escapes with them, bidirectional controls, zero-width
//     characters and tag characters. Joiners and variation selectors stay where
//     scripts and emoji need them;
//   - every kind of line break becomes a newline;
//   - the opening bracket of what could be taken for a tag of ours, and the
//     first character of a nonce, are changed.
//
// The time is linear in the text. An empty nonce is none.
func escapeText(text, nonce string) string {
	if !needsEscape(text, nonce) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + len(text)/16)
	prev := rune(' ')
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		rest := text[i+size:]
		switch {
		case r == '\r' && strings.HasPrefix(rest, "\n"):
			// The newline that follows says it.
		case IsLineBreak(r):
			b.WriteByte('\n')
		case r == escapeOpen || r == escapeClose || isHidden(prev, r) || startsTag(text[i:]) || startsNonce(text[i:], nonce):
			escapeRune(&b, r)
			r = escapeClose
		default:
			b.WriteRune(r) // U+FFFD for invalid bytes
		}
		prev = r
		i += size
	}
	return b.String()
}

// needsEscape is false for most texts at the cost of a glance at each byte.
func needsEscape(text, nonce string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= utf8.RuneSelf, c < ' ' && c != '\n' && c != '\t', c == 0x7f:
			return true
		case c == '<', c == '&', c == '%', c == '\\', c == '=':
			if startsTag(text[i:]) {
				return true
			}
		case nonce != "" && c|0x20 == nonce[0]|0x20:
			if startsNonce(text[i:], nonce) {
				return true
			}
		}
	}
	return false
}

func escapeRune(b *strings.Builder, r rune) {
	code := strings.ToUpper(strconv.FormatInt(int64(r), 16))
	b.WriteRune(escapeOpen)
	b.WriteString("U+" + "0000"[min(len(code), 4):] + code)
	b.WriteRune(escapeClose)
}

// unescapeText undoes escapeText, but for line breaks, which stay newlines.
func unescapeText(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, string(escapeOpen)+"U+")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		const longest = 6 // digits of a code
		digits, _, closed := strings.Cut(after[:min(len(after), longest+len(string(escapeClose)))], string(escapeClose))
		code, err := strconv.ParseUint(digits, 16, 32)
		if !closed || err != nil || !utf8.ValidRune(rune(code)) {
			b.WriteString(string(escapeOpen) + "U+")
			text = after
			continue
		}
		b.WriteRune(rune(code))
		text = after[len(digits)+len(string(escapeClose)):]
	}
}

// Line returns text that fits on one line: without line breaks, hidden
// characters and our tags, so that Clean accepts it. The change can't be
// undone.
func Line(text string) string {
	if !needsEscape(text, "") && !strings.Contains(text, "\n") {
		return text
	}
	text = breaksToSpaces(text)
	var b strings.Builder
	prev := ' ' // that was written
	for i, r := range text {
		if isHidden(prev, r) {
			continue
		}
		if startsTag(text[i:]) {
			r = '('
		}
		b.WriteRune(r)
		prev = r
	}
	return b.String()
}

// breaksToSpaces is for before a text is escaped: "<", a line break and our word are no
// tag, and with a space between they look like one.
func breaksToSpaces(text string) string {
	return strings.Map(func(r rune) rune {
		if IsLineBreak(r) {
			return ' '
		}
		return r
	}, text)
}

// IsLineBreak reports whether any usual reader shows the character as the end
// of a line.
func IsLineBreak(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// isHidden tells whether nobody can see r, the character after prev, or
// whether it changes how others are seen. Line breaks are not its business.
func isHidden(prev, r rune) bool {
	switch {
	case r < 0x7f:
		return r < ' ' && r != '\n' && r != '\t'
	case r > 0xad && r < 0x034f, r > 0x036f && r < 0x0600, r > 0x3164 && r < 0xd800:
		return false // Latin, Greek, Cyrillic, Han and Hangul: most of all text, told at once
	case r == 0x200c || r == 0x200d || r >= 0xfe00 && r <= 0xfe0f:
		return !joins(prev, r)
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, // fillers
		r >= 0x180b && r <= 0x180f,
		r >= 0xe0000 && r <= 0xe0fff: // tags, more variation selectors, and what is reserved beside them
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// joins tells whether a joiner or variation selector has something to act on.
// Latin letters are never joined, which is where hidden ones are put.
func joins(prev, r rune) bool {
	if prev < utf8.RuneSelf {
		return r == 0xfe0f && (prev >= '0' && prev <= '9' || prev == '#' || prev == '*') // keycaps
	}
	if prev >= 0xfe00 && prev <= 0xfe0f {
		return r == 0x200d // ❤️‍🔥
	}
	return !unicode.In(prev, unicode.Cc, unicode.Cf, unicode.Z, unicode.Latin, unicode.Cyrillic, unicode.Greek)
}
