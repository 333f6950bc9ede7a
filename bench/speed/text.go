package speed

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// A corpus is what made-up messages say: a few thousand texts of each role,
// drawn at random, because making and counting a text takes longer than
// storing it. Half the user's messages have fewer than 40 words, half the
// assistant's fewer than 160, one in six over twice as many. Words are as
// frequent as words are: the n-th has a share of about 1/n, so that the search
// index is of a real one's size.
type corpus struct {
	rand  *rand.Rand
	texts map[tree.Role][]text
}

// A text is a message that can be stored, with what is known of it.
type text struct {
	body   json.RawMessage
	said   json.RawMessage // the content, as a JSON string
	tokens int
}

const (
	vocabularySize = 40_000
	userWords      = 40
	assistantWords = 160
	wordSpread     = 2.2 // one message in six is so many times longer than half of them
)

func newCorpus(seed uint64, size int) *corpus {
	c := &corpus{rand: rand.New(rand.NewPCG(seed, 1)), texts: map[tree.Role][]text{}}
	words := c.vocabulary()
	// An exponent of 1 has no limit, so that rand wants more than 1.
	zipf := rand.NewZipf(c.rand, 1.05, 2, vocabularySize-1)
	for role, median := range map[tree.Role]float64{tree.RoleUser: userWords, tree.RoleAssistant: assistantWords} {
		for range size {
			n := max(1, int(median*math.Exp(c.rand.NormFloat64()*math.Log(wordSpread))))
			c.texts[role] = append(c.texts[role], newText(role, sentence(words, zipf, c.rand, n)))
		}
	}
	return c
}

func newText(role tree.Role, content string) text {
	said, _ := json.Marshal(content) // strings always marshal
	body, _ := json.Marshal(struct {
		Role    tree.Role `json:"role"`
		Content string    `json:"content"`
	}{role, content})
	// As package tree counts a message: its text, and what frames it.
	return text{body: body, said: said, tokens: tokens.O200k().Count(content) + 3}
}

// fork gives the same texts to another worker, who draws on their own.
func (c *corpus) fork(worker uint64) *corpus {
	return &corpus{rand: rand.New(rand.NewPCG(worker, 2)), texts: c.texts}
}

// draw gives a text of a role.
func (c *corpus) draw(role tree.Role) text {
	return c.texts[role][c.rand.IntN(len(c.texts[role]))]
}

// vocabulary makes words of syllables, the short ones first, as frequent words
// are.
func (c *corpus) vocabulary() []string {
	onsets := strings.Fields("b c d f g h l m n p r s t v w st tr pl gr br sh th")
	cores := strings.Fields("a e i o u ea ou ai")
	codas := strings.Fields("n r s t l d m ng st nd ck") // and often none
	seen := map[string]bool{}
	var words []string
	for len(words) < vocabularySize {
		syllables := 1 + len(words)/300
		if syllables > 2 {
			syllables = 2 + c.rand.IntN(2)
		}
		var b strings.Builder
		for range syllables {
			b.WriteString(onsets[c.rand.IntN(len(onsets))])
			b.WriteString(cores[c.rand.IntN(len(cores))])
			if c.rand.IntN(2) == 0 {
				b.WriteString(codas[c.rand.IntN(len(codas))])
			}
		}
		if word := b.String(); !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	return words
}

// sentence makes n words of prose.
func sentence(words []string, zipf *rand.Zipf, r *rand.Rand, n int) string {
	var b strings.Builder
	begin := true
	for i := range n {
		word := words[zipf.Uint64()]
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
		begin = r.IntN(14) == 0
	}
	b.WriteByte('.')
	return b.String()
}
