package prompt

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// Kept is a folded message that stays verbatim beside a summary.
type Kept struct {
	tree.Message
	Limit int // tokens that stay of it, the middle being cut; 0: all
}

// Wrap returns the user message that shows a summary in a context, together
// with the folded messages that stay verbatim, oldest first. It is never a
// system message, because its text was made from what anybody wrote. The same
// arguments give the same bytes.
//
// Wrap keeps the message below the size of any message as far as the kept
// messages allow. Kept messages that are too large are cut in the middle. If
// that isn't enough, the oldest are left out: dropped is how many.
func Wrap(text string, kept []Kept, count tokens.Counter) (body json.RawMessage, dropped int) {
	shown := make([]tree.Message, len(kept))
	for i, k := range kept {
		shown[i] = cutTo(k.Message, keptCharacters(k.Message, k.Limit, count))
	}
	return wrapWithin(text, shown, mostSummaryBytes)
}

// Idle reports whether a message says nothing that needs to be kept: thanks, a
// farewell, or the mark of an interruption.
func Idle(m tree.Message) bool {
	const most = 60 // characters
	text := strings.ToLower(strings.TrimSpace(Read(m).Text))
	if strings.HasPrefix(text, "[request interrupted by user") && strings.HasSuffix(text, "]") {
		return true
	}
	if utf8.RuneCountInString(text) > most {
		return false
	}
	idle := false
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.Is(unicode.M, r) && r != '\'' }) {
		switch {
		case idleWords[word]:
			idle = true
		case !politeWords[word]:
			return false
		}
	}
	return idle && !strings.ContainsAny(text, "0123456789?？")
}

// idleWords are thanks and farewells, and politeWords what stands beside them.
var (
	idleWords = words("thanks thank thx bye goodbye danke dank tschüss tschüß merci gracias adiós obrigado obrigada grazie ciao спасибо пока " +
		"谢谢 谢谢你 谢谢您 多谢 再见 拜拜 ありがとう ありがとうございます さようなら 감사합니다 고마워요 dziękuję teşekkürler")
	politeWords = words("you so very much a lot again for now and that's all good night great perfect ok okay nice cool have day see take care " +
		"dir ihnen euch vielen sehr schön bis bald gut super beaucoup muchas bien à tout bientôt большое 好的 非常")
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(list) {
		set[word] = true
	}
	return set
}

// cutTo shortens a message's text to limit characters, its calls included; 0
// leaves it whole.
func cutTo(m tree.Message, limit int) tree.Message {
	if limit <= 0 {
		return m
	}
	if text := keptText(m); utf8.RuneCountInString(text) > limit {
		m.Body, _ = chat.Marshal(struct { // three strings always encode
			Role    string `json:"role"`
			Name    string `json:"name,omitempty"`
			Content string `json:"content"`
		}{string(m.Role), Read(m).Name, CutMiddle(text, limit)})
	}
	return m
}

// keptCharacters turns a kept message's limit in tokens into one in
// characters.
func keptCharacters(m tree.Message, limit int, count tokens.Counter) int {
	if limit <= 0 {
		return 0
	}
	text := keptText(m)
	cut := cutTokens(text, limit, count)
	if cut == text {
		return 0
	}
	mark := utf8.RuneCountInString(cutMark(utf8.RuneCountInString(text)))
	return max(1, utf8.RuneCountInString(cut)-mark)
}

// keptText is what a summary's message shows of a kept message.
func keptText(m tree.Message) string {
	said := Read(m)
	texts := make([]string, 0, 2+len(said.Calls))
	for _, text := range []string{said.Text, said.Refusal} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	for _, call := range said.Calls {
		texts = append(texts, "(calls "+call.Name+": "+call.Arguments+")")
	}
	return strings.Join(texts, "\n")
}

// mostSummaryBytes is what a summary's message may have: less than a message
// may, as an export and an import must be able to carry it.
const mostSummaryBytes = tree.MaxBodyBytes - 1<<10

// wrapWithin is wrapSummary in at most so many bytes, as far as that is a matter
// of what is kept: tokens say little of bytes. Where all of it is too much, the
// long ones are cut until it fits. Where that leaves too little to tell
// anything, the oldest don't stay, and dropped is how many.
func wrapWithin(text string, kept []tree.Message, most int) (body json.RawMessage, dropped int) {
	if body = wrapSummary(text, kept); len(body) <= most {
		return body, 0
	}
	const least = 64 // characters
	longest, lengths := 0, make([]int, len(kept))
	for i, m := range kept {
		lengths[i] = utf8.RuneCountInString(keptText(m))
		longest = max(longest, lengths[i])
	}
	shown := slices.Clone(kept)
	for limit := most; limit >= least && len(body) > most; limit /= 2 {
		if longest <= limit {
			continue // it would change nothing
		}
		for i, m := range kept {
			if lengths[i] > limit {
				shown[i] = cutTo(m, limit)
			}
		}
		body = wrapSummary(text, shown)
	}
	if len(body) <= most {
		return body, 0
	}
	dropped = sort.Search(len(shown), func(n int) bool { return len(wrapSummary(text, shown[n:])) <= most })
	return wrapSummary(text, shown[dropped:]), dropped
}
