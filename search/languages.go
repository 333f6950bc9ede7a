package search

import (
	_ "embed"
	"strings"
	"unicode"

	stem "github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
)

// A language is one that words are stemmed in. The zero language is English,
// which stands in where a text doesn't tell its language: its stemmer cuts
// little, and only Latin letters.
type language uint8

// languageRules are how words of a language are stemmed.
type languageRules struct {
	name   string
	script *unicode.RangeTable
	stem   func(*stem.Env) bool
}

// languages are in the order of their numbers.
var languages = []languageRules{
	{"english", unicode.Latin, english.Stem},
	{"german", unicode.Latin, german.Stem},
	{"french", unicode.Latin, french.Stem},
	{"spanish", unicode.Latin, spanish.Stem},
	{"italian", unicode.Latin, italian.Stem},
	{"portuguese", unicode.Latin, portuguese.Stem},
	{"dutch", unicode.Latin, dutch.Stem},
	{"swedish", unicode.Latin, swedish.Stem},
	{"danish", unicode.Latin, danish.Stem},
	{"norwegian", unicode.Latin, norwegian.Stem},
	{"finnish", unicode.Latin, finnish.Stem},
	{"hungarian", unicode.Latin, hungarian.Stem},
	{"romanian", unicode.Latin, romanian.Stem},
	{"turkish", unicode.Latin, turkish.Stem},
	{"russian", unicode.Cyrillic, russian.Stem},
	{"arabic", unicode.Arabic, arabic.Stem},
	{"tamil", unicode.Tamil, tamil.Stem},
}

//go:embed stopwords.txt
var stopwordsFile string

// stopwords tells for each function word in which languages it is one: a bit
// for each language.
var stopwords = readStopwords(stopwordsFile)

func readStopwords(file string) map[string]uint32 {
	number := map[string]int{}
	for i, l := range languages {
		number[l.name] = i
	}
	found := map[string]uint32{}
	for line := range strings.Lines(file) {
		name, words, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		for word := range strings.FieldsSeq(words) {
			found[word] |= 1 << number[name]
		}
	}
	return found
}

// detectFrom is how many function words of a text it takes to tell its language.
const detectFrom = 2

// languageOf tells a text's language by its function words; English where they
// don't tell. Of two languages with as many, the first one in the list is
// taken, so that the same text is always in the same language.
func languageOf(words []word) language {
	var counts [32]int
	for _, w := range words {
		for bits, l := stopwords[w.text], 0; bits != 0; bits, l = bits>>1, l+1 {
			counts[l] += int(bits & 1)
		}
	}
	best := 0
	for l := range languages {
		if counts[l] > counts[best] {
			best = l
		}
	}
	if counts[best] < detectFrom {
		return 0
	}
	return language(best)
}

func (l language) isStopword(word string) bool { return stopwords[word]&(1<<l) != 0 }

// stemmer stems words. It is not safe for use by several goroutines.
type stemmer struct {
	env   *stem.Env
	known map[wordIn]term
}

type wordIn struct {
	word     string
	language language
}

func newStemmer() *stemmer { return &stemmer{stem.NewEnv(""), map[wordIn]term{}} }

// longestStemmed is the longest word, in bytes, that is stemmed: what is longer
// is no word of a language.
const longestStemmed = 64

// stem cuts the endings off a word, and then its accents, so that a word is
// found by people who leave them out.
func (s *stemmer) stem(word string, l language) string {
	first := firstLetter(word)
	if len(word) <= longestStemmed && unicode.Is(languages[l].script, first) && !strings.ContainsFunc(word, unicode.IsDigit) {
		s.env.SetCurrent(word)
		languages[l].stem(s.env)
		if stemmed := s.env.Current(); stemmed != "" {
			word = stemmed
		}
	}
	return withoutAccents(word)
}

func firstLetter(word string) rune {
	for _, r := range word {
		return r
	}
	return 0
}
