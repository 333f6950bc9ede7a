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
// assistant's fewer than 160, one in six over twice as many.
//
// Two things of a text decide what it takes on disk, and are those of people's:
// how many different words it has, which are entries of the search index, and how
// well Postgres packs it, which it tries with rows over 2 KB. Across texts the
// n-th word has a share of about 1/n (Zipf); within one, what was said is said
// again (H. A. Simon, On a class of skew distribution functions, Biometrika
// 1955), in phrases.
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
	meanBytes      = 857 // of a body, which comes of these

	mostRepeated = 0.55 // share of a long text's words that were said before, in a phrase that comes again
	repeatedHalf = 80   // words, after which it is half of that
	phraseWords  = 4.0  // of such a phrase, in the mean
)

func newCorpus(seed uint64, size int) *corpus {
	c := &corpus{rand: rand.New(rand.NewPCG(seed, 1)), texts: map[tree.Role][]text{}}
	words := c.vocabulary()
	// An exponent of 1 has no limit, so that rand wants more than 1.
	zipf := rand.NewZipf(c.rand, 1.05, 2, vocabularySize-1)
	for _, role := range []tree.Role{tree.RoleUser, tree.RoleAssistant} {
		median := float64(userWords)
		if role == tree.RoleAssistant {
			median = assistantWords
		}
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

// common are the most frequent words, which no forms are made of.
var common = strings.Fields(`
	the of and to a in is it you that he was for on are with as I his they be at one have this from or had by hot but some
	what there we can out other were all your when up use word how said an each she which do their time if will way about
	many then them would write like so these her long make thing see him two has look more day could go come did my sound
	no most number who over know water than call first people may down side been now find any new work part take get place
	made live where after back little only round man year came show every good me give our under name very through just
	form much great think say help low line before turn cause same mean differ move right old too does tell sentence set
	three want air well also play small end put home read hand port large spell add even land here must big high such
	follow act why ask men change went light kind off need house picture try us again animal point mother world near build`)

// stems are words that others are made of.
var stems = strings.Fields(`
	answer branch build cancel check clear close collect commit compare connect copy correct count cover create cut delete
	deliver design detect develop discuss display document download draw edit end enter exceed exist expand expect explain
	export extend fail fetch filter find fix fold follow format gather handle import improve index inform insert inspect
	install join keep label last lead learn limit list load lock log look map mark match measure merge message mount name
	note offer open order own pack page paint park pass path paint plan plant point post predict present press print
	process produce protect publish pull push question queue reach read record reduce refer reject release remain remind
	remove render repair repeat replace reply report request require reset resolve respond rest restart result return
	review round run sample save scan search select send separate serve shape share shift show sign sort sound speak
	split stand start state store stream string struct suggest support switch table talk target task test thank think
	thread time token track train transfer translate travel treat tree trigger trust turn type update upgrade upload user
	value view visit wait walk warn watch weight wonder word work worry wrap write`)

// vocabulary is common words, their forms, and then made-up ones, as names are.
func (c *corpus) vocabulary() []string {
	onsets := strings.Fields("b c d f g h l m n p r s t v w st tr pl gr br sh th")
	cores := strings.Fields("a e i o u ea ou ai")
	codas := strings.Fields("n r s t l d m ng st nd ck") // and often none
	seen := map[string]bool{}
	var words []string
	add := func(word string) {
		if !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	for _, word := range common {
		add(word)
	}
	for _, end := range []string{"", "s", "ed", "ing", "er"} {
		for _, stem := range stems {
			add(stem + end)
		}
	}
	for len(words) < vocabularySize {
		var b strings.Builder
		for range 2 + c.rand.IntN(2) {
			b.WriteString(onsets[c.rand.IntN(len(onsets))])
			b.WriteString(cores[c.rand.IntN(len(cores))])
			if c.rand.IntN(2) == 0 {
				b.WriteString(codas[c.rand.IntN(len(codas))])
			}
		}
		add(b.String())
	}
	return words
}

// sentence makes n words of prose.
func sentence(words []string, zipf *rand.Zipf, r *rand.Rand, n int) string {
	said := make([]string, 0, n)
	for len(said) < n {
		// A share of words takes so many fewer draws as a phrase has words.
		share := mostRepeated * float64(len(said)) / float64(len(said)+repeatedHalf)
		if r.Float64()*(share+phraseWords*(1-share)) >= share {
			said = append(said, words[zipf.Uint64()])
			continue
		}
		from := r.IntN(len(said))
		length := 1 + int(r.ExpFloat64()*(phraseWords-0.5)) // cut to whole words, half a word is lost
		said = append(said, said[from:min(from+length, len(said), from+n-len(said))]...)
	}
	var b strings.Builder
	begin := true
	for i, word := range said {
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
