package prompt

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Why an answer is no summary. The next model is asked, then.
var (
	errEmptySummary = errors.New("the answer is empty")
	errShortSummary = errors.New("the answer is too short to be a summary")
	errReasoning    = errors.New("the answer ends within the model's reasoning")
	ErrRefused      = errors.New("the model refuses to summarize")
	ErrTooLong      = errors.New("the answer is too long for a summary")
	errLeak         = errors.New("the answer repeats its prompt")
)

// minSummary is the least that a summary has, in characters.
const minSummary = 30

// Clean returns the summary in a model's answer. It removes spaces, finished
// reasoning, a code fence or tags around the whole answer, and quote marks
// before every line. If the answer is no summary, the error is one of the
// errors above.
func Clean(text string) (string, error) {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "")
	text, err := dropReasoning(trimBlank(text))
	if err != nil {
		return "", err
	}
	for {
		inner := trimBlank(unquoteLines(unwrapTags(unwrapCode(text))))
		if inner == text {
			break
		}
		text = inner
	}
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		return "", errEmptySummary
	case n < minSummary:
		return "", fmt.Errorf("%w: it has %d characters, and %d are the least", errShortSummary, n, minSummary)
	case isRefusal(text, n):
		return "", ErrRefused
	}
	if leaked := Leaks(text, ""); len(leaked) > 0 {
		return "", fmt.Errorf("%w: %q", errLeak, leaked[0])
	}
	return text, nil
}

// trimBlank takes off spaces and byte order marks.
func trimBlank(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == 0xfeff })
}

var (
	reasoningStart = regexp.MustCompile(`(?i)^<(think|thinking|reasoning)>`)
	reasoningEnd   = regexp.MustCompile(`(?i)</(think|thinking|reasoning)>`)
)

// dropReasoning leaves out what some open models put before their answer.
// Reasoning that has no end was cut off, and no answer came.
func dropReasoning(text string) (string, error) {
	if !reasoningStart.MatchString(text) {
		return text, nil
	}
	end := reasoningEnd.FindStringIndex(text)
	if end == nil {
		return "", errReasoning
	}
	return trimBlank(text[end[1]:]), nil
}

// unwrapCode takes off a code fence that begins with the first line and ends
// with the last.
func unwrapCode(text string) string {
	for _, fence := range []string{"```", "~~~"} {
		first, inner, found := strings.Cut(text, "\n")
		if !found || !strings.HasPrefix(first, fence) || strings.Contains(strings.Trim(first, fence[:1]), fence[:1]) {
			continue
		}
		// A fence inside would mean that the first one ends before the last.
		if body, ok := strings.CutSuffix(inner, fence); ok && !strings.Contains(body, "\n"+fence) {
			return body
		}
	}
	return text
}

var summaryTag = regexp.MustCompile(`(?i)^<((?:conversation[-_])?summary|output|answer|result|response)>`)

// unwrapTags takes off tags around the whole that models like to add.
func unwrapTags(text string) string {
	start := summaryTag.FindStringSubmatch(text)
	if start == nil {
		return text
	}
	end := "</" + start[1] + ">"
	if len(text) < len(start[0])+len(end) || !strings.EqualFold(text[len(text)-len(end):], end) {
		return text
	}
	return text[len(start[0]) : len(text)-len(end)]
}

// unquoteLines takes off the transcript's mark where every line has it.
func unquoteLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		bare, marked := strings.CutPrefix(line, quoteMark)
		if !marked || strings.HasSuffix(bare, quoteMark) { // a table's row
			return text
		}
		lines[i] = strings.TrimPrefix(bare, " ")
	}
	return strings.Join(lines, "\n")
}

// maxRefusal is how long an answer may be, in characters, to be taken for
// nothing but a refusal.
const maxRefusal = 400

// refusals are how models begin to say that they won't, in lower case.
var refusals = []string{
	"i can't", "i cannot", "i can not", "i'm sorry", "i am sorry", "sorry, i", "sorry, but", "i apologize", "i'm unable", "i am unable",
	"i won't", "i will not", "i'm not able", "i am not able", "i must decline", "as an ai", "unfortunately, i can",
	"es tut mir leid", "tut mir leid", "ich kann leider", "ich kann das nicht", "leider kann ich", "ich kann diese anfrage nicht",
	"je suis désolé", "désolé", "je ne peux pas", "lo siento", "no puedo", "desculpe", "não posso", "sinto muito",
	"mi dispiace", "non posso", "het spijt me", "sorry, ik", "ik kan niet", "przykro mi", "przepraszam", "nie mogę",
	"извините", "к сожалению, я не", "я не могу", "вибачте", "üzgünüm", "maaf,",
	"抱歉", "对不起", "我无法", "我不能", "很抱歉", "對不起", "我無法", "申し訳", "すみません", "お手伝いできません", "죄송", "xin lỗi", "tôi không thể",
	"ขออภัย", "عذرا", "عذرًا", "آسف", "لا أستطيع", "متاسفم", "क्षमा करें", "मुझे खेद है", "סליחה", "מצטער",
}

// isRefusal tells whether text of n characters is a refusal and nothing else.
func isRefusal(text string, n int) bool {
	if n > maxRefusal {
		return false
	}
	head := strings.ReplaceAll(strings.ToLower(text), "’", "'")
	for _, start := range refusals {
		if strings.HasPrefix(head, start) {
			return true
		}
	}
	return false
}
