package digest

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/tree"
)

// messageFacts are what a sentence gets from its message.
type messageFacts struct {
	role      tree.Role // "" for a line of a prior summary that names nobody
	speaker   string
	section   section // of a line of a prior summary
	prior     bool
	confirmed bool    // what it says is done was confirmed
	failed    bool    // a tool's result that is an error
	recency   float64 // 1 for the last message, and falls to 0
	lead      bool    // context is a heading
	last      bool    // of the last user message
	opening   float64 // of one of the first user messages of all
	context   string  // of its first sentence
	ended     string  // how the call ended whose result it is
	first     bool    // the first sentence of the first of them
	pasted    bool    // far from the beginning of a long message
}

// openingWorth favours the first messages of the user, in which the goal
// stands, and what to mind all along; and the first lines under each heading of
// a prior summary, which tell of them.
var openingWorth = [...]float64{4, 2, 1.5}

// classWorth is by how much more a wish, a decision and a correction count.
// Among people without an assistant the same words are mostly small talk.
var classWorth = [...]float64{1, 1.1, 1.5, 3}

// judge gives an item its section, class and worth.
func (r *reader) judge(it *item, lower string, code bool, about messageFacts) {
	cue := cues.find(lower)
	it.marks = marksOf(it.text)
	// What a model or a tool says about itself decides nothing for the user.
	byUser := about.role == tree.RoleUser || about.role == ""
	question := strings.HasSuffix(lower, "?") || strings.HasSuffix(lower, "？") || strings.HasSuffix(lower, "؟")
	if byUser && !code {
		switch {
		case cue&cueCorrection != 0 && (!question || cue&cueAsks == 0):
			it.class = 3
		case cue&(cueDecision|cueBan|cueIdentity) != 0:
			it.class = 2
		case cue&cueWish != 0 || about.first:
			it.class = 1
		}
	}
	if cue&cueMore == 0 && it.context == "" {
		it.class = min(it.class, 1) // "Never!" doesn't say what
	}
	it.rule = it.class >= 2 && cue&cueRule != 0 && !about.pasted && (!question || it.class == 3) && (r.assisted || about.speaker == string(about.role))
	if about.prior && about.role == "" && about.section == sectionDecisions {
		it.class, it.rule = max(it.class, 2), true // the prior summary says so
	}
	it.section = sectionOf(cue, it.class, question, about)
	if r.people && !about.prior {
		it.section = sectionFacts // what was said is what was agreed
	}
	it.worth = roleWorth(about.role) * (1 + about.recency)
	if r.assisted || about.role == "" {
		it.worth *= classWorth[it.class]
	}
	if about.opening > 0 {
		it.worth *= about.opening
	}
	if cue&cueSelf != 0 && byUser {
		it.worth *= 1.5
		it.told = !code && !about.pasted
	}
	if cue&cueTime != 0 {
		it.worth *= 2.6
	}
	switch {
	case isTable(it.piece(), it.terms):
		it.worth *= 0.05
	case code:
		it.worth *= 0.2
	case about.pasted && it.class < 2:
		it.worth *= 0.5
	case question && it.section != sectionOpen && it.class < 3 && byUser && r.assisted && (cue&cueWish == 0 || cue&cueAsks != 0):
		it.worth *= 0.25
	case question && it.section != sectionOpen && (cue&cueSelf == 0 || !byUser):
		it.worth *= 0.5
	case it.section == sectionDone, it.section == sectionOpen, about.failed:
		it.worth *= 1.2
	}
	const greeting = 32 // characters of a sentence that is no more than one
	idle := 0
	switch {
	case cue&cueGreets != 0 && utf8.RuneCountInString(lower) < greeting:
		idle = greeting
	case cue&cueIdle != 0:
		idle = 2
	}
	it.stub = !it.prior && it.class < 2 && it.section != sectionOpen && says(it.terms) < enough+idle
	it.worth *= r.relevance(it.marks)
	it.asked = r.askedFor(lower)
	if it.class == 3 {
		for _, mark := range rejectedMarks(it.text) {
			r.rejected[mark] = it.order
		}
	}
}

// isTable tells a row of numbers, which nobody can read without the head of the
// table.
func isTable(text string, terms []term) bool {
	const many = 8
	numbers, words := 0, 0
	for _, t := range terms {
		switch {
		case t.kind == kindNumber:
			numbers++
		case t.kind == kindPair || t.kind == kindName || t.kind == kindWord && !isDigits(text[t.start:t.end]):
			words++
		}
	}
	return numbers >= many && numbers > 2*words
}

// enough is how much a sentence says that is understood by itself.
const enough = 3

// says adds up what terms tell: a fact counts twice.
func says(terms []term) (sum int) {
	for _, t := range terms {
		switch {
		case t.kind == kindPhrase || t.kind == kindQuoted:
		case t.kind.isFact():
			sum += 2
		case t.kind == kindPair || !t.short:
			sum++
		}
	}
	return sum
}

// isBare tells a sentence of nothing but numbers.
func isBare(terms []term) bool {
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(t term) bool { return t.kind != kindNumber && t.kind != kindPhrase })
}

func roleWorth(role tree.Role) float64 {
	switch role {
	case tree.RoleUser, "":
		return 2
	case tree.RoleSystem, tree.RoleDeveloper:
		return 1.8
	case tree.RoleAssistant:
		return 1
	}
	return 0.6
}

// sectionOf gives the heading that a sentence stands under. A line of a prior
// summary stays where it was.
func sectionOf(cue cueSet, class int, question bool, about messageFacts) section {
	switch {
	case about.prior:
		return about.section
	case class == 3, class > 0 && cue&(cueDecision|cueBan|cueWish) != 0 && !question, about.first && !question:
		return sectionDecisions
	case question && about.last:
		return sectionOpen
	case cue&cueDone != 0 && about.role != tree.RoleTool && cue&cueOpen == 0 && !question:
		if about.confirmed && cue&cueUnreal == 0 {
			return sectionDone
		}
		if about.role == tree.RoleAssistant {
			return sectionOpen
		}
	case cue&cueOpen != 0 && about.role != tree.RoleTool && !question:
		return sectionOpen
	}
	return sectionFacts
}

// relevance is how much more an item counts that has facts of the look-ahead.
func (r *reader) relevance(marks []string) float64 {
	relevance := 1.0
	for _, mark := range marks {
		if r.ahead[mark] {
			relevance = min(relevance+1, 3)
		}
	}
	return relevance
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

// favourAsked adds to the worth of what the instructions ask for. A word that
// many sentences have says nothing.
func (r *reader) favourAsked() {
	count := map[string]int{}
	for _, it := range r.items {
		for _, word := range it.asked {
			count[word]++
		}
	}
	for i := range r.items {
		more := 1.0
		for _, word := range r.items[i].asked {
			if count[word] <= max(3, len(r.items)/10) {
				more = min(more+2, 5)
			}
		}
		r.items[i].worth *= more
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
			if bare != "" && markKind(bare) != kindNone && len(bare) >= 3 {
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
				it.worth *= 0.1
				it.class, it.rule = 0, false
				break
			}
		}
	}
}
