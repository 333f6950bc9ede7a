package digest

import (
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// messageFacts are what a sentence gets from its message.
type messageFacts struct {
	role      tree.Role // "" for a line of a prior summary that names nobody
	speaker   string
	section   section // of a line of a prior summary
	prior     bool
	confirmed bool // what it says is done was confirmed
	failed    bool // a tool's result that is an error
	recency   int  // 0 to 8
	last      bool // of the last user message
	opening   int  // score of one of the first user messages of all
	first     bool // the first sentence of the first of them
	pasted    bool // far from the beginning of a long message
}

// openingScores favour the first messages of the user, in which the goal
// stands, and what to mind all along.
var openingScores = [...]int{45, 25, 15}

// judge gives an item its section, class and score.
func (r *reader) judge(it *item, lower string, code bool, about messageFacts) {
	cue := cues.find(lower)
	marks, weight := marksOf(it.text)
	it.marks = marks
	// What a model or a tool says about itself decides nothing for the user.
	byUser := about.role == tree.RoleUser || about.role == ""
	question := strings.HasSuffix(lower, "?") || strings.HasSuffix(lower, "？") || strings.HasSuffix(lower, "؟")
	if byUser && !code {
		switch {
		case cue&cueCorrection != 0:
			it.class = 3
		case cue&(cueDecision|cueIdentity) != 0:
			it.class = 2
		case cue&cueWish != 0 || about.first:
			it.class = 1
		}
	}
	if about.prior && about.role == "" && about.section == sectionDecisions {
		it.class = max(it.class, 2) // who wrote the prior summary says so
	}
	it.section = sectionOf(cue, it.class, question, about)
	it.score = weight + roleScore(about.role) + about.recency
	switch it.class {
	case 3:
		it.score += 60
	case 2:
		it.score += 45
	case 1:
		it.score += 20
	default:
		if !byUser && cue&(cueCorrection|cueDecision) != 0 {
			it.score += 10
		}
		if cue&(cueDone|cueOpen) != 0 {
			it.score += 8
		}
	}
	it.score += about.opening
	if about.failed {
		it.score += 10
	}
	if code {
		it.score -= 20
	}
	if about.pasted && it.class < 2 {
		it.score -= 12
	}
	switch {
	case len(it.text) < 24 && weight == 0 && it.class < 2:
		it.score -= 25 // thanks, hello, ok
	case question && !byUser && weight == 0:
		it.score -= 15 // anything else?
	}
	it.score += r.relevance(marks)
	it.asked = r.askedFor(lower)
	if it.prior {
		it.score = max(it.score, leastScore) // it was worth it before
	}
	if it.class == 3 {
		for _, mark := range rejectedMarks(it.text) {
			r.rejected[mark] = it.order
		}
	}
}

func roleScore(role tree.Role) int {
	switch role {
	case tree.RoleUser, "":
		return 30
	case tree.RoleSystem, tree.RoleDeveloper:
		return 25
	case tree.RoleAssistant:
		return 12
	}
	return 0
}

// sectionOf gives the heading that a sentence stands under. A line of a prior
// summary stays where it was.
func sectionOf(cue cueSet, class int, question bool, about messageFacts) section {
	switch {
	case about.prior:
		return about.section
	case class == 3, class > 0 && cue&(cueDecision|cueWish) != 0 && !question, about.first && !question:
		return sectionDecisions
	case question && about.last:
		return sectionOpen
	case cue&cueDone != 0 && about.role != tree.RoleTool && cue&cueOpen == 0 && !question:
		if about.confirmed {
			return sectionDone
		}
		if about.role == tree.RoleAssistant {
			return sectionOpen
		}
	case cue&cueOpen != 0 && about.role != tree.RoleTool:
		return sectionOpen
	}
	return sectionFacts
}

// aheadScore is what a mark that the look-ahead has, too, adds to a score.
const aheadScore = 10

// relevance is what the look-ahead adds to a score.
func (r *reader) relevance(marks []string) int {
	score := 0
	for _, mark := range marks {
		if r.ahead[mark] {
			score = min(score+aheadScore, 3*aheadScore)
		}
	}
	return score
}

// askedFor lists the words that a sentence and the instructions have in
// common.
func (r *reader) askedFor(lower string) (words []string) {
	if len(r.wanted) == 0 {
		return nil
	}
	for word := range strings.FieldsFuncSeq(lower, notWordRune) {
		if r.wanted[word] && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// favourAsked adds to the scores of what the instructions ask for. A word that
// many sentences have says nothing.
func (r *reader) favourAsked() {
	const wordScore = 25
	count := map[string]int{}
	for _, it := range r.items {
		for _, word := range it.asked {
			count[word]++
		}
	}
	for i := range r.items {
		score := 0
		for _, word := range r.items[i].asked {
			if count[word] <= max(3, len(r.items)/10) {
				score = min(score+wordScore, 3*wordScore)
			}
		}
		r.items[i].score += score
	}
}

// negations are words, and pairs of words, that say that what follows is not
// so.
var negations = map[string]bool{
	"not": true, "isn't": true, "wasn't": true, "instead of": true, "rather than": true,
	"nicht": true, "statt": true, "anstatt": true, "pas": true, "au lieu": true, "plutôt que": true,
	"no": true, "en vez": true, "en lugar": true, "não": true, "em vez": true, "non": true, "invece di": true,
	"niet": true, "plaats van": true, "nie": true, "zamiast": true, "değil": true, "не": true, "вместо": true, "ليس": true,
}

// rejectedMarks are the marks that a correction names as wrong: "5433, not
// 5432" rejects 5432.
func rejectedMarks(text string) []string {
	const reach = 3 // words that a negation is about
	var rejected []string
	negated := 0
	before := ""
	for field := range strings.FieldsSeq(text) {
		bare := trimMark(field)
		word := strings.ToLower(bare)
		switch {
		case field == bare && (negations[word] || negations[before+" "+word]): // "No," denies what was said before
			negated = reach
		case negated > 0:
			if markWeight(bare) > 0 && len(bare) >= 3 {
				rejected = append(rejected, bare)
			}
			negated--
		}
		if strings.HasSuffix(field, ",") {
			negated = 0 // "not 5432, but 5433"
		}
		before = word
	}
	return rejected
}

// demoteSuperseded takes value from what a later correction says is wrong, so
// that where room is short the correction stands alone.
func (r *reader) demoteSuperseded() {
	if len(r.rejected) == 0 {
		return
	}
	for i := range r.items {
		it := &r.items[i]
		if it.class == 3 {
			continue
		}
		for _, mark := range it.marks {
			if at, wrong := r.rejected[mark]; wrong && it.order < at {
				it.score -= 60
				it.class = 0
				break
			}
		}
	}
}
