package prompt

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// tagWord begins the name of every tag of ours. Text within may hold any tag
// but one that begins so, or looks as if it did.
const tagWord = "coppice"

// tagGap is how many characters may stand between a bracket and the tag's
// name, and tagNoise how many hidden ones before each letter, for the two still
// to be seen as one.
const (
	tagGap   = 16
	tagNoise = 4
)

// startsTag tells whether text begins with what a reader, or a model that
// looks through encodings, could take for a tag of ours: any kind of opening
// angle bracket, then the tag word in any letters that look like it.
func startsTag(text string) bool {
	size := angleBracket(text)
	if size == 0 {
		return false
	}
	rest := text[size:]
	for range tagGap {
		size := encodedSlash(rest)
		if r, n := utf8.DecodeRuneInString(rest); size == 0 && n > 0 && isTagGap(r) {
			size = n
		}
		if size == 0 {
			break
		}
		rest = rest[size:]
	}
	return startsLike(rest, tagWord)
}

// startsNonce tells the same of the nonce. It consists of ASCII letters and
// digits.
func startsNonce(text, nonce string) bool {
	if nonce == "" {
		return false
	}
	// The first character decides almost always, so it is asked before all.
	if c := text[0]; c < utf8.RuneSelf && c|0x20 != nonce[0]|0x20 {
		return false
	}
	return startsLike(text, nonce)
}

// startsLike tells whether text begins with word in look-alike letters, hidden
// ones left aside.
func startsLike(text, word string) bool {
	for i := range len(word) {
		for noise := 0; ; noise++ {
			r, size := utf8.DecodeRuneInString(text)
			if size == 0 {
				return false
			}
			text = text[size:]
			if looksLike(r, word[i]) {
				break
			}
			if noise == tagNoise || !isIgnorable(r) {
				return false
			}
		}
	}
	return true
}

// looksLike tells whether r passes for the ASCII letter or digit c.
func looksLike(r rune, c byte) bool {
	c = lowerASCII(c)
	if r < utf8.RuneSelf {
		b := lowerASCII(byte(r))
		return b == c || strings.IndexByte(lookAlikeASCII[c], b) >= 0
	}
	if strings.ContainsRune(lookAlikes[c], unicode.ToLower(r)) {
		return true
	}
	if r >= 0x370 && r < 0x1d00 || r >= 0x2e80 && r < 0xff00 || r >= 0x20000 {
		return false // scripts without such letters
	}
	// Full-width, mathematical, circled and accented letters.
	plain := norm.NFKD.String(string(r))
	return lowerASCII(plain[0]) == c
}

func lowerASCII(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c |= 0x20
	}
	return c
}

// Letters that pass for those of the tag word, in lower case.
var (
	lookAlikeASCII = map[byte]string{'o': "0", 'i': "1l|!", 'e': "3", 'c': "("}
	lookAlikes     = map[byte]string{
		'c': "сϲᴄꮯ¢", 'o': "оοօᴏσ٥۵०੦૦๐໐", 'p': "рρᴘҏϸ", 'i': "іιıɩɪӏ∣", 'e': "еєҽᴇɛ℮ε",
	}
)

// angleBracket gives the length of the opening angle bracket that text begins
// with, in whatever shape or encoding; 0 where there is none.
func angleBracket(text string) int {
	r, size := utf8.DecodeRuneInString(text)
	switch r {
	case '<', '＜', '﹤', '‹', '«', 0x2329, '〈', '⟨', '《', '⟪', '≪', '˂', 'ᐸ', '❮', '❬', '❰', '⧼', '⦑', '⦓', '⋖', '⩹', '⪡':
		return size
	case '&', '%', '\\', '=':
		if len(text) < 3 || strings.IndexByte(`#lLaA32uUxX70\&`, text[1]) < 0 {
			return 0
		}
	default:
		return 0
	}
	// Encoded, perhaps twice: &lt; &#60; &#x3c; %3C %253c \u003c \x3c \74 =3C
	head := strings.ToLower(text[:min(len(text), 16)])
	body := strings.TrimLeft(head[1:], "&%\\=#ux{")
	body = strings.TrimPrefix(body, "amp;")
	body = strings.TrimPrefix(body, "25")
	body = strings.TrimLeft(body, "#ux{0")
	for _, code := range []string{"lt", "3c", "60", "74"} {
		if after, ok := strings.CutPrefix(body, code); ok {
			after = strings.TrimLeft(after, ";}")
			return len(head) - len(after)
		}
	}
	return 0
}

// encodedSlash gives the length of the slash in some encoding that text begins
// with; 0 where there is none.
func encodedSlash(text string) int {
	if text == "" || text[0] != '%' && text[0] != '&' && text[0] != '\\' && text[0] != '=' {
		return 0
	}
	for _, code := range []string{"%2f", "%252f", "&#47;", "&#x2f;", "&sol;", `\u002f`, `\x2f`, "=2f"} {
		if len(text) >= len(code) && strings.EqualFold(text[:len(code)], code) {
			return len(code)
		}
	}
	return 0
}

// isTagGap tells what may stand between a bracket and the name. A line break
// may not: no reader takes that for a tag.
func isTagGap(r rune) bool {
	switch r {
	case '/', '\\', '!', '?', '|', '[', '-', '_', '∕', '⁄', '／', '⧸', '╱', '﹨':
		return true
	case '<':
		return false // the next bracket is asked by itself
	}
	return !IsLineBreak(r) && (unicode.IsSpace(r) || isIgnorable(r))
}

// isIgnorable tells what a reader passes over within a word.
func isIgnorable(r rune) bool {
	return !IsLineBreak(r) && (r >= utf8.RuneSelf && unicode.Is(unicode.M, r) || isHidden(' ', r))
}

// Leaks returns the parts of a prompt's or a wrapper's structure that text
// contains: our tags, the nonce, and quoted lines under a role. A summary with
// any of them repeats its prompt. An empty nonce is not looked for.
func Leaks(text, nonce string) []string {
	const most = 5
	var found []string
	for i := 0; i < len(text) && len(found) < most; {
		_, size := utf8.DecodeRuneInString(text[i:])
		if startsTag(text[i:]) || startsNonce(text[i:], nonce) {
			found = append(found, firstCharacters(text[i:], 40))
			size = min(len(text)-i, max(size, len(nonce)))
		}
		i += size
	}
	if role := quotedLines.FindString(text); role != "" {
		found = append(found, firstCharacters(role, 40))
	}
	return found
}
