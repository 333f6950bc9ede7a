package bench

import (
	"math"
	"strings"
)

// systemText is what a made-up conversation begins with.
const systemText = "You help the keepers of a wood to plan their year. Answer briefly, name the compartment that you speak of, and say where you are not sure."

// vocabulary is what a made-up conversation is about. Each word is one token or
// two.
var vocabulary = strings.Fields(`
	hazel oak ash birch willow chestnut alder hornbeam stool coppice standard pole rod stem bud root leaf bark seed
	rabbit deer bramble bluebell nightingale moth dormouse fern moss fungus
	hedge ride gate path stream bank ditch pond clearing compartment boundary slope soil clay chalk
	cut clear plant thin lay stack split weave burn count measure mark move repair protect inspect
	winter spring summer autumn week month season year morning frost rain wind drought
	bill hook saw axe fence stake hurdle charcoal faggot thatch spar tool trailer
	north south east west upper lower first second next last old new wet dry dense open young tall
	we they you the a some most few many each both and but because before after until while with without near under over between
	should could will would must may not always often never again still already soon
	ten twelve fifteen twenty thirty forty fifty hundred
`)

// wordsPerSentence is how long sentences are, on average.
const wordsPerSentence = 14

// words makes text of about median tokens, half the time fewer.
func (c *talk) words(median float64) string {
	n := max(1, int(median*math.Exp(c.rand.NormFloat64()*math.Log(spread))))
	var b strings.Builder
	begin := true
	for i := range n {
		word := vocabulary[c.rand.IntN(len(vocabulary))]
		switch {
		case begin && i > 0:
			b.WriteString(". ")
		case i > 0:
			b.WriteByte(' ')
		}
		if begin {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
		begin = c.rand.IntN(wordsPerSentence) == 0
	}
	b.WriteByte('.')
	return b.String()
}
