package prompt

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
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

// minSummary is the least that a summary has, in characters of which those of
// Chinese, Japanese and Korean count twice.
const minSummary = 30

// lengthOf counts characters as minSummary does.
func lengthOf(text string) (n int) {
	for _, r := range text {
		n++
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			n++
		}
	}
	return n
}

// Clean returns the summary in a model's answer. It removes spaces, finished
// reasoning, a sentence that says that a summary follows, a code fence or tags
// around the whole answer, the cutoff marker at the end, and quote marks before
// every line. If the answer is no summary, the error is one of the errors above.
func Clean(text string) (string, error) {
	text = trimBlank(strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", ""))
	for {
		inner, err := dropReasoning(text)
		if err != nil {
			return "", err
		}
		inner = trimBlank(unquoteLines(unwrapTags(unwrapCode(dropMarker(dropPreamble(inner))))))
		if inner == text {
			break
		}
		text = inner
	}
	switch n := lengthOf(text); {
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
	reasoningStart = regexp.MustCompile(`(?i)^(?:<(?:think|thinking|reasoning|analysis|scratchpad)>|\[THINK\])`)
	reasoningEnd   = regexp.MustCompile(`(?i)(?:</(?:think|thinking|reasoning|analysis|scratchpad)>|\[/THINK\])`)
	// bareEnd matches the end of reasoning whose beginning the provider has cut off.
	bareEnd = regexp.MustCompile(`(?im)(?:</think(?:ing)?>|\[/THINK\])\s*$`)
	// Harmony's channels, which some servers leave in the text.
	channelStart = regexp.MustCompile(`^(?:<\|start\|>\w*)?<\|channel\|>`)
	channelFinal = regexp.MustCompile(`<\|channel\|>final[^<]*<\|message\|>`)
	channelEnd   = regexp.MustCompile(`(?:<\|(?:end|return|eot_id|im_end)\|>\s*)+$`)
)

// dropReasoning leaves out what some models put before their answer, and the marks
// of their template. Reasoning that has no end was cut off, and no answer came.
func dropReasoning(text string) (string, error) {
	text = trimBlank(channelEnd.ReplaceAllString(text, ""))
	if channelStart.MatchString(text) {
		final := channelFinal.FindAllStringIndex(text, -1)
		if final == nil {
			return "", errReasoning
		}
		return trimBlank(text[final[len(final)-1][1]:]), nil
	}
	end := bareEnd.FindStringIndex(text)
	if reasoningStart.MatchString(text) {
		if end = reasoningEnd.FindStringIndex(text); end == nil {
			return "", errReasoning
		}
	}
	if end == nil {
		return text, nil
	}
	return trimBlank(text[end[1]:]), nil
}

// preamble matches a first line that only says that a summary follows.
var preamble = regexp.MustCompile(`(?i)^(?:(?:sure|certainly|of course|okay|ok|gerne|natürlich|klar|bien sûr|claro|certo|好的|当然|はい)[,.!，。！、]*\s*)?` +
	`(?:here(?:'s| is)|below is|this is|hier (?:ist|kommt)|voici|aquí (?:está|tienes)|ecco|aqui está|hier is|以下是|这是|以下は|以下が)[^\n]{0,60}` +
	`(?:summary|zusammenfassung|résumé|resumen|riassunto|resumo|samenvatting|摘要|总结|總結|概要|要約)[^\n]{0,60}\n(?:\s*-{3,}\s*\n)?`)

func dropPreamble(text string) string { return text[len(preamble.FindString(text)):] }

// marker matches the cutoff marker with which an answer ends that goes on copying.
var marker = regexp.MustCompile(`\n\s*</?` + tagWord + `-` + string(partCutoff) + `(?:-[0-9a-f]+)?/?>[^\n]{0,200}(?:\nCUTOFF\.[^\n]{0,200})?\s*$`)

func dropMarker(text string) string {
	if at := marker.FindStringIndex(text); at != nil {
		return text[:at[0]]
	}
	return text
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

var summaryTag = regexp.MustCompile(`(?i)^<((?:conversation[-_])?summary|output|answer|result|response|` + tagWord + `-[a-z]+(?:-[0-9a-f]+)?)>`)

// unwrapTags takes off tags around the whole that models like to add, ours too.
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
