package prompt

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/tokens"
)

// CutMiddle shortens text to about limit characters: two thirds from its start
// and the rest from its end. A mark between them says how many characters are
// missing. A text of limit characters or fewer comes back as it is. Characters
// that form one sign stay together.
func CutMiddle(text string, limit int) string {
	limit = max(limit, 0)
	if len(text) <= limit {
		return text
	}
	count := utf8.RuneCountInString(text)
	if count <= limit {
		return text
	}
	head := StartOfCluster(text, ByteOffset(text, limit*2/3))
	tail := StartOfCluster(text, ByteOffset(text, count-(limit-limit*2/3)))
	if tail <= head {
		tail = len(text)
	}
	return text[:head] + cutMark(utf8.RuneCountInString(text[head:tail])) + text[tail:]
}

// cutMark says how many characters are missing where it stands.
func cutMark(characters int) string {
	return fmt.Sprintf(" [… %d characters cut out …] ", characters)
}

// cutTokens is CutMiddle to at most limit tokens. It counts a text a few times
// its result, whatever the length. Where the mark alone has more than limit, it
// gives "".
func cutTokens(text string, limit int, counter tokens.Counter) string {
	const longestToken = 16 // characters; a few tokens are longer, and then more is cut than need be
	limit = max(limit, 0)
	characters := limit * longestToken
	for {
		cut := CutMiddle(text, characters)
		n := counter.Count(cut)
		if n <= limit {
			return cut
		}
		if characters == 0 {
			return ""
		}
		length := min(characters, utf8.RuneCountInString(text))
		characters = min(length-1, int(int64(length)*int64(limit)/int64(n)))
	}
}

// ByteOffset returns the offset at which the n-th character begins.
func ByteOffset(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}

// StartOfCluster moves an offset back to the beginning of the characters that
// form one sign, if the beginning is near.
func StartOfCluster(text string, at int) int {
	for range 8 {
		if at <= 0 || at >= len(text) {
			return at
		}
		r, _ := utf8.DecodeRuneInString(text[at:])
		before, size := utf8.DecodeLastRuneInString(text[:at])
		if !unicode.Is(unicode.M, r) && !isJoiner(r) && !isJoiner(before) {
			return at
		}
		at -= size
	}
	return at
}

// isJoiner tells what glues emoji and letters: joiners and skin tones.
func isJoiner(r rune) bool {
	return r == 0x200c || r == 0x200d || r >= 0x1f3fb && r <= 0x1f3ff
}

// firstCharacters is the start of text as one line.
func firstCharacters(text string, n int) string {
	text = text[:ByteOffset(text, n)]
	return strings.Join(strings.Fields(text), " ")
}
