package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
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
		{partTitle, fence(partTitle, nonce, transcribe(messages, titleLimits, nonce)) + "\n\nOutput the title of this conversation."},
	}.messages()
}

// Why an answer is no title.
var (
	errNoTitle   = errors.New("the answer has no title")
	errLongTitle = errors.New("the answer is too long for a title")
)

var (
	titleLabel  = regexp.MustCompile(`(?i)^(?:#{1,6} +|title *: *)+`)
	titleQuotes = [][2]string{{`"`, `"`}, {"“", "”"}, {"„", "“"}, {"«", "»"}, {"'", "'"}, {"「", "」"}, {"《", "》"}}
)

// CleanTitle returns the title in a model's answer: one line, without marks of
// Markdown, quotation marks around it or a full stop at its end.
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
	text = PlainLine(Line(text))
	for {
		inner := strings.TrimSpace(titleLabel.ReplaceAllString(text, ""))
		for _, q := range titleQuotes {
			if body, ok := strings.CutPrefix(inner, q[0]); ok && strings.HasSuffix(body, q[1]) && !strings.Contains(strings.TrimSuffix(body, q[1]), q[1]) {
				inner = strings.TrimSuffix(body, q[1])
			}
		}
		if one := strings.TrimSuffix(inner, "."); !strings.Contains(one, ".") {
			inner = one
		}
		if inner == text {
			break
		}
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
