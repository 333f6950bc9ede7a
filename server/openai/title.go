package openai

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
)

// maxTitle is how many characters a title that is made of a message has.
const maxTitle = 60

// titleOf makes a conversation's title as the page does: of the text that the
// user begins with. It is "" where there is none.
func titleOf(messages []*chat.Message) string {
	for _, m := range messages {
		if m.Role != chat.User {
			continue
		}
		line, _, _ := strings.Cut(strings.TrimSpace(m.Text()), "\n")
		words := strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		line = strings.Join(words, " ")
		if utf8.RuneCountInString(line) > maxTitle {
			line = strings.TrimRight(string([]rune(line)[:maxTitle]), " ") + "…"
		}
		return line
	}
	return ""
}
