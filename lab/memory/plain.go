package memory

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

// plain is BM25 with nothing added but a share of the scores of the messages beside.
type plain struct {
	words   func(string) []string
	beside  float64
	docs    []map[string]float64
	lengths []float64
	average float64
	df      map[string]float64
}

// functionWords are those of English, where contractions are taken apart.
const functionWords = ` a about after again all also am an and any are as at be been being but by can could did do does doing don for from had 
 has have having he her here hers him his how i if in into is isn it its just ll me more most my no nor not of 
 off on or our out over own re same she should so some such than that the their theirs them then there these they this those through to 
 too under until up us ve very was we were what when where which while who whom whose why will with would you your yours s t d 
 m `

var leftOut = strings.Fields(functionWords)

func plainWords(text string) (words []string) {
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.In(r, unicode.Letter, unicode.Mark, unicode.Digit) }) {
		if !slices.Contains(leftOut, word) {
			words = append(words, word)
		}
	}
	return words
}

// stemmedWords are a text's words without their English endings.
func stemmedWords(text string) []string {
	words := plainWords(text)
	for i, w := range words {
		env := snowballstem.NewEnv(w)
		english.Stem(env)
		words[i] = env.Current()
	}
	return words
}

func newPlain(c Chat, words func(string) []string, beside float64) *plain {
	p := &plain{words: words, beside: beside, df: map[string]float64{}}
	for _, m := range c.Messages {
		counts := map[string]float64{}
		words := p.words(m.Name + " " + m.Text)
		for _, w := range words {
			counts[w]++
		}
		for w := range counts {
			p.df[w]++
		}
		p.docs = append(p.docs, counts)
		p.lengths = append(p.lengths, float64(len(words)))
		p.average += float64(len(words)) / float64(len(c.Messages))
	}
	return p
}

func (p *plain) search(question string, limit int) (best []int) {
	words := p.words(question)
	slices.Sort(words)
	words = slices.Compact(words)
	own, scores := make([]float64, len(p.docs)), make([]float64, len(p.docs))
	for i, doc := range p.docs {
		for _, w := range words {
			if n := doc[w]; n > 0 {
				own[i] += math.Log(1+(float64(len(p.docs))-p.df[w]+0.5)/(p.df[w]+0.5)) * n * 2.2 / (n + 1.2*(0.25+0.75*p.lengths[i]/p.average))
			}
		}
	}
	for i := range own {
		scores[i] = own[i]
		if i > 0 {
			scores[i] += p.beside * own[i-1]
		}
		if i+1 < len(own) {
			scores[i] += p.beside * own[i+1]
		}
		if scores[i] > 0 {
			best = append(best, i)
		}
	}
	slices.SortStableFunc(best, func(a, b int) int {
		return cmp.Compare(scores[b], scores[a])
	})
	return best[:min(limit, len(best))]
}
