package search

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/internal/check"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"Don't PANIC, it's 3.5 km!", "don t panic it s 3 5 km"},
		{"user_id = get-users('/etc/hosts')", "user id get users etc hosts"},
		{"Ärger in Zürich", "ärger in zürich"},
		{"ﬁne ﬁsh", "fine fish"},           // compatibility forms
		{"e\u0301te\u0301", "été"},         // combining marks
		{"東京都へ行く", "東京 京都 都へ へ行 行く"},       // pairs of letters
		{"我 喜欢 Go 语言", "我 喜欢 go 语言"},       // one letter alone
		{"コーヒーを飲む", "コー ーヒ ヒー ーを を飲 飲む"},   // the long vowel sign
		{"한국어를", "한국 국어 어를"},               // Korean
		{"ภาษาไทย", "ภา าษ ษา าไ ไท ทย"},   // Thai
		{"ที่นี่", "ที่นี่"},               // marks stay with their letter
		{"हिन्दी में", "हिन्दी में"},       // vowel signs of spaced scripts
		{"Привет, мир", "привет мир"},      // Cyrillic
		{"مرحبا بالعالم", "مرحبا بالعالم"}, // Arabic
		{"a\xffb", "a b"},                                    // not UTF-8
		{"mail@example.org", "mail example org"},             // an address
		{"2024-03-15T10:00", "2024 03 15t10 00"},             // a time
		{"🙂🙂 ok 👍🏽, ❤️", "🙂 🙂 ok 👍 ❤"},                       // emojis, without their colour and form
		{"┌──┐ → ©", ""},                                     // other signs
		{strings.Repeat("x", 300), strings.Repeat("x", 300)}, // no word of a language
	} {
		var got []string
		for _, w := range wordsOf(test.text) {
			got = append(got, w.text)
		}
		check.That(t, strings.Join(got, " ") == test.want, "%q: %q, want %q", test.text, strings.Join(got, " "), test.want)
	}
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"What did you buy for the garden?", "english"},
		{"Was hast du für den Garten gekauft?", "german"},
		{"Qu'est-ce que tu as acheté pour le jardin ?", "french"},
		{"¿Qué compraste para el jardín?", "spanish"},
		{"Che cosa hai comprato per il giardino?", "italian"},
		{"O que você comprou para o jardim?", "portuguese"},
		{"Wat heb je voor de tuin gekocht?", "dutch"},
		{"Vad köpte du till trädgården och varför?", "swedish"},
		{"Что ты купил для сада?", "russian"},
		{"Bahçe için ne aldın, ve neden?", "turkish"},
		{"Mit vettél a kertbe, és miért?", "hungarian"},
		{"Mitä ostit puutarhaan ja miksi se oli niin kallis?", "finnish"},
		{"Ce ai cumpărat pentru grădină și de ce?", "romanian"},
		{"ماذا اشتريت من السوق في هذا اليوم؟", "arabic"},
		{"garden tools", "english"}, // nothing tells
		{"庭のために何を買いましたか", "english"},
		{"Καλημέρα, τι κάνεις;", "english"},
	} {
		check.Equal(t, "the language of "+test.text, languages[languageOf(wordsOf(test.text))].name, test.want)
	}
}

// Words of one stem find each other, with their accents and without.
func TestStems(t *testing.T) {
	t.Parallel()
	s := newStemmer()
	for _, test := range []struct{ language, words string }{
		{"english", "paint painting painted paints"},
		{"english", "user users"},
		{"german", "garten gartens"},
		{"german", "häuser hauser"},
		{"french", "continuer continuation continuez"},
		{"spanish", "corriendo corriendo"},
		{"russian", "книга книги книгу"},
		{"portuguese", "livro livros"},
		{"swedish", "flicka flickor flickorna"},
		{"english", "μήνυμα μηνυμα"}, // no stemmer, but accents
	} {
		l := language(slices.IndexFunc(languages, func(l languageRules) bool { return l.name == test.language }))
		words := strings.Fields(test.words)
		want := s.stem(words[0], l)
		for _, w := range words[1:] {
			got := s.stem(w, l)
			check.That(t, got == want, "%s: %s has the stem %q, and %s %q", test.language, words[0], want, w, got)
		}
	}
}

// A word stands in its text where it says, whatever the text is.
func TestWordsStandWhereTheySay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`([a-zé ]|[ก-๙]|[一-龥]|[ァ-ー]|[가-힣]|\x{301}){0,40}`)).Draw(t, "text")
		s := newStemmer()
		at := 0
		for _, w := range wordsOf(text) {
			check.Need(t, (w.from >= at || w.bigram || w.part) && w.to > w.from && w.to <= len(text) && w.text != "" && utf8.ValidString(w.text),
				"%q: %+v", text, w)
			if at = w.to; w.bigram {
				at = w.from
			}
			for l := range languages {
				check.Need(t, s.stem(w.text, language(l)) != "", "%q has an empty stem in %s", w.text, languages[l].name)
			}
		}
		got := excerpt(text, nil)
		check.Need(t, strings.Contains(text, got) && len(got) <= excerptBytes, "excerpt %q of %q", got, text)
	})
}

func TestSnippet(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("filler ", 5000)
	for name, test := range map[string]struct {
		text  string
		terms []string
		holds string
	}{
		"a short text":             {"the quick fox 4", []string{"fox"}, "the quick fox 4"},
		"in the middle":            {filler + "An Oak stands " + filler, []string{"oak"}, "filler An Oak stands filler"},
		"a whole word":             {filler + "soak " + filler + "oak", []string{"oak"}, "filler oak"},
		"most of them together":    {filler + "oak " + filler + "the oak and the ash " + filler, []string{"ash", "oak"}, "the oak and the ash"},
		"another case":             {filler + "ÉLAN vital " + filler, []string{"élan"}, "ÉLAN vital"},
		"without accents":          {filler + "ÉLAN vital " + filler, []string{"elan"}, "ÉLAN vital"},
		"a word with punctuation":  {filler + "see http://a.org/b?c=d " + filler, []string{"a.org/b?c=d", "a.org", "/b?c=d"}, "http://a.org/b?c=d"},
		"none":                     {"begin " + filler, []string{"oak"}, "begin filler"},
		"words without end":        {strings.Repeat("x", 1<<20) + " oak " + strings.Repeat("林", 1<<18), []string{"oak"}, "oak"},
		"bytes that are no letter": {filler + "\u0301oak\u0301 oak " + filler, []string{"oak"}, "oak filler"},
		"nothing":                  {"", []string{"oak"}, ""},
	} {
		q := check.Must(parse(`"`+strings.Join(test.terms, `" or "`)+`"`, allWords))(t)
		got := excerpt(test.text, q.found(sayingOf(test.text)))
		if !strings.Contains(got, test.holds) || len(got) > excerptBytes || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, %d words: %q, want %q in it", name, len(got), len(strings.Fields(got)), got, test.holds)
		}
	}
}
