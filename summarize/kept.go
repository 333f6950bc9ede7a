package summarize

import (
	"unicode/utf8"

	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// cutTo shortens a message's text to limit characters; 0 leaves it whole.
func cutTo(m tree.Message, limit int) tree.Message {
	if limit > 0 {
		m.Body = messageBody(string(m.Role), cutMiddle(readSpoken(m).text, limit))
	}
	return m
}

// keptCharacters turns a kept message's limit in tokens into one in
// characters.
func keptCharacters(m tree.Message, limit int, count tokens.Counter) int {
	if limit <= 0 {
		return 0
	}
	text := readSpoken(m).text
	cut := cutTokens(text, limit, count)
	if cut == text {
		return 0
	}
	mark := utf8.RuneCountInString(cutMark(utf8.RuneCountInString(text)))
	return max(1, utf8.RuneCountInString(cut)-mark)
}
