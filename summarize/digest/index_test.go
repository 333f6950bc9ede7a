package digest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// trades is a chat with more names and numbers than a short digest has room for.
func trades(n int) (fold []tree.Message) {
	for i := range n {
		fold = append(fold, prompttest.UserSays(fmt.Sprintf("We bought %d crates of Zb%cra%cn from the yard near Kal%cto%cn, which a man called Wen%cdo%c brought here by boat.",
			1000+7*i, 'a'+i%26, 'a'+i/26, 'a'+i/26, 'a'+i%26, 'a'+i%26, 'a'+i/26)))
	}
	return fold
}

// indexOf is the index of a digest, without what introduces its lines.
func indexOf(digest string) string {
	_, index, _ := strings.Cut(digest, indexHeading+"\n")
	return strings.NewReplacer(indexLine, "", indexWords, "").Replace(index)
}

// The index names what the sentences don't, within its share, and the next
// digest reads it again.
func TestDigestIndex(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	got := extract(prompt.Input{Fold: trades(60), TargetTokens: 600}, counter)
	index := indexOf(got)
	if n := counter.Count(index); n < 40 || n > 600*indexShare/100 {
		t.Errorf("the index has %d tokens: %q", n, index)
	}
	sentences, _, _ := strings.Cut(got, indexHeading)
	named := regexp.MustCompile(`Kal\w+n`).FindAllString(index, -1)
	if len(named) == 0 {
		t.Errorf("no place is named: %q", index)
	}
	for _, name := range named {
		if strings.Contains(sentences, name) {
			t.Errorf("%q stands in a sentence and in the index", name)
		}
	}
	in := prompt.Input{Prior: got, PriorTokens: counter.Count(got), TargetTokens: 900, Fold: []tree.Message{prompttest.UserSays("Hm.")}}
	again := extract(in, counter)
	checkDigest(t, in, again, counter)
	lost := 0
	for _, name := range named {
		if !strings.Contains(again, name) {
			lost++
		}
	}
	if lost > len(named)/4 {
		t.Errorf("%d of %d names are lost: %q", lost, len(named), indexOf(again))
	}
	if short := extract(prompt.Input{Fold: trades(60), TargetTokens: indexLeast - 1}, counter); strings.Contains(short, indexHeading) {
		t.Errorf("a short digest has an index:\n%s", short)
	}
}

// An index has only words of the messages, and stays within its share.
func TestDigestIndexProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{2,9}|[A-Z][a-z]{2,6}|[0-9]{1,4}|"[a-z]{2,5} [a-z]{2,5}"|[a-z]{2,5}\.(go|com)/[a-z]{1,3}`)
		known := map[string]bool{"": true}
		in := prompt.Input{TargetTokens: rapid.IntRange(indexLeast, 800).Draw(t, "target")}
		for range rapid.IntRange(1, 20).Draw(t, "messages") {
			said := strings.Join(rapid.SliceOfN(word, 1, 60).Draw(t, "words"), " ") + "."
			for w := range strings.FieldsSeq(said) {
				known[trimMark(w)] = true
			}
			in.Fold = append(in.Fold, prompttest.UserSays(said))
		}
		for range 2 {
			got := extract(in, ones{})
			checkDigest(t, in, got, ones{})
			index := indexOf(got)
			if n := len(index); n > in.TargetTokens*indexShare/100+len(indexHeading)+len(indexLine) {
				t.Fatalf("the index has %d characters of %d", n, in.TargetTokens)
			}
			for w := range strings.FieldsSeq(index) {
				if !known[trimMark(w)] {
					t.Fatalf("%q is nobody's word in %q", w, index)
				}
			}
			in.Prior, in.PriorTokens, in.Fold = got, len(got), nil
		}
	})
}

// Of few sentences it can't be told which words are rare: the index has their
// names and numbers only. A name stays one in the next digest's index, though it
// stands alone there, and goes before a word.
func TestDigestIndexOfNames(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	var fold []tree.Message
	for c := 'a'; c < 'm'; c++ {
		fold = append(fold, prompttest.UserSays(fmt.Sprintf("The cooper of Kal%con mends saddle%c, kettle%c, lantern%c, window%c, marigold%c, barley%c, clover%c, quarry%c and harbour%c.", c, c, c, c, c, c, c, c, c, c)))
	}
	fold = append(fold, prompttest.AssistantSays("Noted.")) // among people names go first anyway
	index := indexOf(extract(prompt.Input{Fold: fold, TargetTokens: 200}, counter))
	for word := range strings.FieldsSeq(index) {
		if !strings.ContainsAny(word, "K") {
			t.Errorf("%q is no name or number: %q", word, index)
		}
	}
	if index == "" {
		t.Error("there is no index")
	}
	r := newReader(prompt.Input{}, 4000)
	r.readIndex("barley clover saddle Zbarak kettle, Grand Canyon", true)
	var names []string
	for _, it := range r.items {
		if slices.ContainsFunc(it.terms, func(t term) bool { return t.kind.isFact() }) {
			names = append(names, it.text)
		}
	}
	if got := strings.Join(names, "|"); got != "Zbarak|Grand Canyon" {
		t.Errorf("the names of the index are %q", got)
	}
}

// Facts and words have lines of their own, in which the next digest finds them
// again.
func TestDigestIndexLines(t *testing.T) {
	t.Parallel()
	r := newReader(prompt.Input{}, 4000)
	r.readFold([]tree.Message{prompttest.UserSays("The cooper sold 121 barrels and 4 in Kalaton beside the Grand Canyon.")})
	p := newPicker(r, tokens.O200k(), 4000)
	var chosen []entry
	for _, e := range p.entries(nil, 0, make([]int, len(r.vocabulary))) {
		if !e.fact {
			t.Errorf("an entry of one sentence is a word: %v", e)
		}
		chosen = append(chosen, e)
	}
	const facts = indexLine + "121 4 Kalaton, Grand Canyon"
	if got := p.layOutIndex(chosen); got != facts {
		t.Errorf("the index is %q, not %q", got, facts)
	}
	chosen = append(chosen, entry{item: 0, start: 4, end: 10}, entry{item: 0, start: 11, end: 15})
	if got := p.layOutIndex(chosen); got != facts+"\n"+indexWords+"cooper sold" {
		t.Errorf("the index is %q", got)
	}
	if got := p.layOutIndex(chosen[len(chosen)-2:]); got != indexWords+"cooper sold" {
		t.Errorf("an index of words is %q", got)
	}
	next := newReader(prompt.Input{}, 4000)
	next.readPrior("Extract of 9 earlier messages, made without a language model.\n\n" + indexHeading + "\n" + facts + "\n" + indexWords + "cooper sold")
	var got []string
	for _, it := range next.items {
		if !it.entry {
			t.Errorf("%q is no entry", it.text)
		}
		got = append(got, fmt.Sprint(it.text, " ", it.fact))
	}
	if want := "121 4 Kalaton true|Grand Canyon true|cooper false|sold false"; strings.Join(got, "|") != want {
		t.Errorf("the next digest reads %q", got)
	}
}

// The index names no speaker of the lines above it, and of a short chat no word for
// a name that mostly begins with a small letter, or says yes.
func TestDigestIndexOfPeople(t *testing.T) {
	t.Parallel()
	said := func(name, text string) tree.Message {
		return prompttest.Message(tree.RoleUser, map[string]any{"name": name, "content": text})
	}
	in := prompt.Input{Fold: []tree.Message{
		said("Joanna", "We have a boat."), said("Bertil", "Well (Will they go to Kalmar, Joanna or Ottilie?)"),
		said("Joanna", "It will be good (Yes) and we will see Visby, Bertil."),
	}}
	r := newReader(in, 1000)
	r.readFold(in.Fold)
	p := newPicker(r, tokens.O200k(), 1000)
	p.choose(0, 10)
	if index := p.layOutIndex(p.chooseEntries(1000)); index != indexLine+"Kalmar Ottilie Visby Bertil" {
		t.Errorf("%q", index)
	}
}

// Where an assistant speaks, a small number stands in the index with what it counts.
func TestDigestIndexOfNumbers(t *testing.T) {
	t.Parallel()
	in := prompt.Input{Fold: []tree.Message{prompttest.UserSays("We feed 12 geese at 6:30, since 1936 and with 4 in 3 Kalmar barns."), prompttest.AssistantSays("…")}}
	r := newReader(in, 1000)
	r.readFold(in.Fold)
	p := newPicker(r, tokens.O200k(), 1000)
	if index := p.layOutIndex(p.chooseEntries(1000)); index != indexLine+"12 geese, 6:30 1936 4, 3 Kalmar" {
		t.Errorf("%q", index)
	}
}

// TestJoinedPiecesMakeNoTag has pieces of a digest that make a tag of the prompt where
// they come to stand beside each other.
func TestJoinedPiecesMakeNoTag(t *testing.T) {
	t.Parallel()
	in := prompt.Input{Fold: []tree.Message{prompttest.UserSays("It has `wood_1<` and then Coppice-17."), prompttest.AssistantSays("…")}}
	r := newReader(in, 1000)
	r.readFold(in.Fold)
	p := newPicker(r, tokens.O200k(), 1000)
	if index := p.layOutIndex(p.chooseEntries(1000)); index != indexLine+"wood_1( Coppice-17" {
		t.Errorf("the index is %q", index)
	}
	p.items = []item{{text: shorten(strings.Repeat("And so on. ", 9), 60, []string{"wood_1<", "Coppice-17"})}}
	p.chosen = []int{0}
	if text := p.text(); !strings.HasSuffix(text, "wood_1( Coppice-17") {
		t.Errorf("the text is %q", text)
	}
}

// TestQuotes holds that a quotation is a term without the spaces and the punctuation at
// its ends, and none where that leaves nothing.
func TestQuotes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`It says "hazel  wood."`:   "hazel  wood",
		"« coupe à blanc\u202f! »": "coupe à blanc",
		"`\u1680 go run .\u2003`":  "go run",
		"\"\u1680\"":               "", "\"\u3000\u2003\"": "", `" ."`: "", `""`: "",
	} {
		got := ""
		quotes(text, func(start, end int) { got += text[start:end] })
		if got != want {
			t.Errorf("of %q it takes %q, want %q", text, got, want)
		}
	}
}

// A word of two letters is none to look up, in any alphabet.
func TestDigestShortWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"он на": 0, "تم من عن": 0, "из за до по": 0, "лес дом": 2, "قلم ورق": 2, "호두 나무": 2, "to be or": 0, "oaks": 1} {
		if got := says(vocabulary{}.terms("X " + text)); got != want {
			t.Errorf("%q says %d, want %d", text, got, want)
		}
	}
}
