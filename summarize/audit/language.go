package audit

import (
	"strings"
	"unicode"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// functionWords are words of a language that few others have.
var functionWords = map[string]string{
	"en": "the and of is was with that this for you not are have has his her they",
	"de": "der die und ist nicht das ein eine mit ich sie auf dem den von auch wir wird",
	"fr": "le les des est et une dans pour que pas vous nous avec sur qui ne",
	"es": "el los las y que es por una con para del no lo como pero está",
	"it": "il gli che di è per una con non sono della nel anche più lo",
	"pt": "o os que não uma com para do da em é por mais como você ao",
	"nl": "het een van niet dat ik je met voor zijn op aan ook maar wordt naar",
	"sv": "och att det som är en på för med av inte till den har ett jag",
	"pl": "nie się na że jest do z w i to jak ale czy dla przez od",
	"tr": "bir ve bu için ile da çok ne gibi daha olarak var değil ama mi sonra",
}

// scripts tell a language by its letters.
var scripts = []struct {
	language string
	table    *unicode.RangeTable
}{
	{"ja", unicode.Hiragana}, {"ja", unicode.Katakana}, {"zh", unicode.Han}, {"ko", unicode.Hangul}, {"ru", unicode.Cyrillic}, {"ar", unicode.Arabic},
	{"he", unicode.Hebrew}, {"th", unicode.Thai}, {"el", unicode.Greek}, {"hi", unicode.Devanagari},
}

// languageOf tells a text's language; "" where the text doesn't tell it clearly.
func languageOf(text string) string {
	const least = 8     // function words
	const perLetter = 2 // letters of another script that count as a function word
	letters := map[string]int{}
	for _, r := range text {
		if r < 0x370 {
			continue
		}
		for _, s := range scripts {
			if unicode.Is(s.table, r) {
				letters[s.language]++
				break
			}
		}
	}
	if letters["ja"]*10 > letters["zh"] { // Kanji are Han
		letters["ja"] += letters["zh"]
		letters["zh"] = 0
	}
	counts := map[string]int{}
	for language, n := range letters {
		counts[language] = n / perLetter
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		for _, language := range languagesOf[word] {
			counts[language]++
		}
	}
	best, second := "", ""
	for language, n := range counts {
		switch {
		case n > counts[best] || n == counts[best] && language < best:
			best, second = language, best
		case n > counts[second]:
			second = language
		}
	}
	if counts[best] < least || counts[best] < 2*counts[second] {
		return ""
	}
	return best
}

// languagesOf has the languages of each function word.
var languagesOf = func() map[string][]string {
	index := map[string][]string{}
	for language, words := range functionWords {
		for word := range strings.FieldsSeq(words) {
			index[word] = append(index[word], language)
		}
	}
	return index
}()

// otherLanguage tells whether a summary is in another language than what users say,
// where both are clear.
func otherLanguage(in prompt.Input, summary string) bool {
	var b strings.Builder
	for _, m := range in.Fold {
		if m.Role == tree.RoleUser {
			b.WriteString(prompt.CutMiddle(prompt.Read(m).Text, 2_000) + "\n")
		}
	}
	is, want := languageOf(summary), languageOf(b.String())
	return is != "" && want != "" && is != want
}
