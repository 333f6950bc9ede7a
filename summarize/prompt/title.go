package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/tree"
)

// titleLimits bound what a prompt for a title shows of each message: a title needs
// no more than how the conversation begins.
var titleLimits = limits{text: 2_000, arguments: 200, result: 400}

// MaxTitle is how many characters a title has at most.
const MaxTitle = 80

// Title returns the prompt that asks for a conversation's title, as
// chat-completions message objects. The messages are how the conversation begins.
// For nonce, see Nonce.
func Title(messages []tree.Message, nonce string) []json.RawMessage {
	return prompt{
		{partSystem, fill(partTitle, map[string]any{"Nonce": nonce})},
		{partTitle, fence(partTitle, nonce, newTranscriber(titleLimits, Input{Nonce: nonce}).messages(messages)) + "\n\nOutput the title of this conversation."},
	}.messages()
}

// Why an answer is no title.
var (
	errNoTitle   = errors.New("the answer has no title")
	errLongTitle = errors.New("the answer is too long for a title")
)

// titleQuotes are the marks that models put around a title.
const titleQuotes = `"“”„«»「」《》`

// CleanTitle returns the title in a model's answer: one line, without quotation marks
// around it, a heading's mark or a full stop at its end.
func CleanTitle(answer, nonce string) (string, error) {
	text, err := dropReasoning(trimBlank(strings.ReplaceAll(strings.ToValidUTF8(answer, "\ufffd"), "\x00", "")))
	if err != nil {
		return "", err
	}
	text = trimBlank(unwrapTags(unwrapCode(text)))
	if len(Leaks(text, nonce)) > 0 {
		return "", errLeak
	}
	if strings.ContainsFunc(text, IsLineBreak) {
		return "", fmt.Errorf("%w: it has several lines", errLongTitle)
	}
	text = strings.Trim(Line(text), "#*_` ")
	text = strings.Trim(strings.TrimPrefix(text, "Title:"), "*` ")
	if inner := strings.Trim(text, titleQuotes+". "); !strings.ContainsAny(inner, titleQuotes+".") {
		text = inner
	}
	text = strings.Join(strings.Fields(text), " ")
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		return "", errNoTitle
	case isRefusal(text, n):
		return "", ErrRefused
	case n > MaxTitle:
		return "", fmt.Errorf("%w: it has %d characters, and %d are the most", errLongTitle, n, MaxTitle)
	}
	return text, nil
}
