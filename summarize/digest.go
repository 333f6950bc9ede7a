package summarize

import (
	"strings"

	"github.com/coppice-chat/coppice/tokens"
)

// The digest is the summarizer of last resort: it needs no model and no
// network. It takes sentences out of the messages and writes none of its own,
// so it can't invent, and cannot condense either. What it does is choose: what
// users decided, preferred and corrected first, then what holds names,
// numbers, addresses and paths, then the rest, as far as the target goes.
//
// It works in steps: messages and the prior summary become items
// (digestread.go, digestprior.go), items get a section and a score
// (digestscore.go), and the best of them are laid out under headings
// (digestpick.go). It takes no clock, no randomness and no map's order: equal
// input gives equal output.

// minDigest is the least target, in tokens: a digest has a first line that
// says what it is, and a smaller target is taken for this one.
const minDigest = 32

// digest summarizes without a model. The result has at most in.TargetTokens
// (or minDigest), and fewer where that wouldn't be smaller than what it stands
// for. It is "" only where neither the messages nor the prior summary hold any
// text; otherwise it has minSummary characters and passes cleanSummary.
//
// The look-ahead says what matters, and none of its text gets into the result;
// instructions do so by the words they have in common with a sentence.
//
// 100,000 tokens of input take some 30 ms; the time is linear in the input.
func digest(in Input, counter tokens.Counter) string {
	r := newDigestReader(in)
	r.readPrior(in.Prior)
	r.readFold(in.Fold)
	if !r.text {
		return ""
	}
	r.demoteSuperseded()
	r.favourAsked()
	p := digestPicker{counter: counter, intro: r.intro(), items: r.items}
	return p.pick(digestLimit(in, r.characters))
}

// digestLimit is how many tokens a digest may have: the target, and half of
// what it folds besides the prior summary, because more would save little. Of
// little text half would say nothing, and a digest that isn't smaller than the
// text does no harm: it isn't used. Next to a prior summary the room is never
// less than a line or two, so that a merge with next to nothing loses nothing.
func digestLimit(in Input, characters int) int {
	const charactersPerToken, little, line = 4, 160, 48
	folded := 0
	for _, m := range in.Fold {
		folded += m.Tokens
	}
	if folded == 0 {
		folded = characters / charactersPerToken
	}
	prior := in.PriorTokens
	if prior == 0 {
		prior = len(in.Prior) / charactersPerToken
	}
	return min(max(in.TargetTokens, minDigest), max(prior+max(folded/2, line), little))
}

// A digestSection is a heading of a digest.
type digestSection int

const (
	sectionDecisions digestSection = iota
	sectionFacts
	sectionDone
	sectionOpen
	digestSections // how many there are
)

// digestHeadings are English whatever the conversation's language: the models
// that read them know it, and a later digest finds them again.
var digestHeadings = [digestSections]string{"## Decisions and preferences", "## Facts", "## Done", "## Open or not confirmed"}

// A digestItem is a sentence that may get into a digest.
type digestItem struct {
	section digestSection
	speaker string // who said it; "" where a prior summary doesn't say
	text    string // one line
	marks   []string
	asked   []string // words that the instructions have, too
	class   int      // 3 for a correction, 2 for a decision or who somebody is, 1 for a wish, 0 else
	score   int
	order   int  // in the conversation
	prior   bool // from the prior summary
}

// line is the item as the digest shows it.
func (it digestItem) line() string {
	if it.speaker == "" {
		return "- " + it.text + "\n"
	}
	return "- " + it.speaker + ": " + it.text + "\n"
}

// digestLine makes text fit for one line of a digest: no line breaks, nothing
// hidden, and no tag of ours, so that cleanSummary takes it.
func digestLine(text string) string {
	if !needsEscape(text, "") {
		return text
	}
	var b strings.Builder
	prev := ' '
	for i, r := range text {
		switch {
		case isLineBreak(r):
			b.WriteByte(' ')
		case isHidden(prev, r):
		case startsTag(text[i:]):
			b.WriteByte('(')
		default:
			b.WriteRune(r)
		}
		prev = r
	}
	return b.String()
}
