package digest

import (
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/tree"
)

var roleWorth = map[tree.Role]float64{"": 2, tree.RoleUser: 2, tree.RoleSystem: 1.8, tree.RoleDeveloper: 1.8, tree.RoleAssistant: 1, tree.RoleTool: 0.6}

// judge gives an item its section and worth.
func (r *reader) judge(it *item, lower string, cue cueSet, code bool, from source) {
	const greeting = 32 // characters of a sentence that is no more than one
	role := from.role
	if role == tree.RoleAssistant && !r.assisted {
		role = tree.RoleUser
	}
	// What a model or a tool says about itself decides nothing for the user.
	byUser := role == tree.RoleUser || role == ""
	question := asks(lower) && (cue&cueCorrection == 0 || cue&cueAsks != 0)
	wish := cue&cueWish != 0 && !(asks(lower) && cue&cueAsks != 0)
	said := byUser && r.assisted && !code && !question && !from.pasted
	it.rule = said && cue&(cueCorrection|cueDecision|cueBan) != 0 || from.decides
	it.decides = from.decides || !from.prior && (it.rule || said && (wish || from.goal))
	it.worth = roleWorth[role] * (1 + from.recency)
	if from.goal {
		it.worth *= 4
	}
	if it.rule && cue&(cueBan|cueCorrection) != 0 {
		it.worth *= 2
	}
	if r.assisted { // people tell of themselves and of days all the time
		if cue&cueSelf != 0 && byUser {
			it.worth *= 1.5
		}
		if cue&cueTime != 0 {
			it.worth *= 2
		}
	}
	switch {
	case code:
		it.worth *= 0.2
	case cue&cueGreets != 0 && cue&cueSelf == 0 && utf8.RuneCountInString(lower) < greeting:
		it.worth = 0
	case from.pasted, question && r.assisted:
		it.worth *= 0.5
	}
}

// asks tells a question.
func asks(text string) bool {
	return strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？") || strings.HasSuffix(text, "؟")
}

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
