package search

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/tree"
)

// marks are what a message is besides its terms.
type marks uint8

const (
	ofUser marks = 1 << iota
	ofAssistant
	endsAsking // in a question mark
	tellsTime  // may answer when
	tellsCount // how many
	tellsName  // who, and where
)

const isSaid = ofUser | ofAssistant // whose role tells who spoke

// telling are words that may answer when or how many.
var telling = func() map[string]marks {
	found := map[string]marks{}
	for words, tells := range map[string]marks{
		`yesterday today tonight tomorrow ago last next since week weeks weekend month months year years recently
		monday tuesday wednesday thursday friday saturday sunday
		gestern heute morgen seit woche wochen monat monate jahr jahre letzte letzten letztes nächste nächsten
		hier aujourd demain semaine mois année dernier dernière prochain prochaine depuis
		ayer hoy mañana semana mes meses año años pasado pasada próximo próxima desde hace`: tellsTime,
		`two three four five six seven eight nine ten eleven twelve twenty thirty hundred thousand once twice couple several few both
		zwei drei vier fünf sechs sieben acht neun zehn deux trois quatre cinq sept huit neuf dix dos tres cuatro cinco seis siete ocho nueve diez`: tellsCount,
	} {
		for w := range strings.FieldsSeq(words) {
			found[w] |= tells
		}
	}
	for name := range months {
		found[name] |= tellsTime
	}
	return found
}()

// talkWords are about the talk itself: a question repeats them, and what it asks for
// doesn't have them.
var talkWords = strings.Fields(`mention mentions mentioned mentioning discuss discussed discusses discussing discussion discussions conversation conversations
		talk talked talking talks say says said tell told describe described express expressed chat chats`)

// marksOf reads the marks of a message.
func marksOf(role tree.Role, text string, words []word) (m marks) {
	switch role {
	case tree.RoleUser:
		m |= ofUser
	case tree.RoleAssistant:
		m |= ofAssistant
	}
	end := strings.TrimRightFunc(text, func(r rune) bool { return !unicode.IsPunct(r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) // signs and emojis
	if strings.HasSuffix(end, "?") || strings.HasSuffix(end, "？") || strings.HasSuffix(end, "؟") {
		m |= endsAsking
	}
	for _, w := range words {
		if w.bigram {
			continue
		}
		m |= telling[w.text]
		if m&tellsCount == 0 && strings.ContainsFunc(w.text, unicode.IsDigit) {
			m |= tellsCount
		}
		if m&tellsName == 0 && isName(text, w) {
			m |= tellsName
		}
	}
	return m
}

// isName tells a word with a capital that begins no sentence.
func isName(text string, w word) bool {
	first, size := utf8.DecodeRuneInString(text[w.from:])
	second, _ := utf8.DecodeRuneInString(text[w.from+size:])
	before := strings.TrimRight(text[max(0, w.from-4):w.from], " ")
	return before != "" && !strings.ContainsRune(".!?\n", rune(before[len(before)-1])) && unicode.IsUpper(first) && unicode.IsLower(second)
}

// calls gives the name by which a message calls whom it answers: "Hi Anna!".
func calls(text string, words []word) string {
	if len(words) < 2 || !isName(text, words[1]) {
		return ""
	}
	name, rest := text[words[1].from:words[1].to], text[words[1].to:]
	if rest == "" || !strings.ContainsRune(",.!?", rune(rest[0])) {
		return ""
	}
	return name
}

// askedWords are by which words a question asks for what.
var askedWords = map[string]marks{
	"when": tellsTime, "who": tellsName, "whom": tellsName, "where": tellsName,
	"wann": tellsTime, "wer": tellsName, "wen": tellsName, "wo": tellsName, "wohin": tellsName, "wieviele": tellsCount,
	"quand": tellsTime, "où": tellsName, "combien": tellsCount,
	"cuándo": tellsTime, "quién": tellsName, "dónde": tellsName, "cuántos": tellsCount, "cuántas": tellsCount,
}

// asked is what a question asks for besides its words.
type asked struct {
	marks marks
	dates []date
}

// A date is a day or a month; its year is 0 for any, its day 0 for all of the month.
type date struct{ year, month, day int }

// askedBy reads what a question asks for.
func askedBy(question string) (a asked) {
	words := wordsOf(question)
	for i, w := range words {
		switch {
		case a.marks != 0:
		case i > 0 && words[i-1].text == "how" && (w.text == "many" || w.text == "much"), i > 0 && words[i-1].text == "wie" && w.text == "viele":
			a.marks = tellsCount
		case i > 0 && words[i-1].text == "how" && w.text == "long":
			a.marks = tellsTime
		default:
			a.marks = askedWords[w.text]
		}
	}
	a.dates = datesIn(question, words)
	return a
}

// months have their number by their names.
var months = func() map[string]int {
	numbers := map[string]int{}
	for _, names := range []string{
		"january february march april may june july august september october november december",
		"januar februar märz april mai juni juli august september oktober november dezember",
		"janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
		"enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
		"gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
		"janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
	} {
		for i, name := range strings.Fields(names) {
			numbers[name] = i + 1
		}
	}
	return numbers
}()

var (
	writtenDate = regexp.MustCompile(`\b(\d{4})-(\d{2})-(\d{2})\b`)
	chineseDate = regexp.MustCompile(`(?:(\d{4})年)?(\d{1,2})月(?:(\d{1,2})[日号])?`)
)

// datesIn finds the dates of a question. A month's name that may be another word
// counts beside a number, or with a capital within a sentence.
func datesIn(question string, words []word) (dates []date) {
	number := func(i, least, most int) int {
		if i < 0 || i >= len(words) {
			return 0
		}
		digits := strings.TrimRightFunc(words[i].text, unicode.IsLetter) // 7th
		n, err := strconv.Atoi(digits)
		if err != nil || n < least || n > most {
			return 0
		}
		return n
	}
	for i, w := range words {
		month, known := months[w.text]
		if !known {
			continue
		}
		before := i - 1
		if before > 0 && slices.Contains([]string{"of", "de", "di"}, words[before].text) {
			before--
		}
		d := date{month: month, day: number(before, 1, 31), year: number(i+1, 1900, 2200)}
		if day := number(i+1, 1, 31); d.day == 0 && day > 0 {
			d.day = day
			d.year = number(i+2, 1900, 2200)
		} else if d.year == 0 && number(i+1, 1, 31) == 0 && i+1 < len(words) && slices.Contains([]string{"of", "de", "di"}, words[i+1].text) {
			d.year = number(i+2, 1900, 2200)
		}
		if d.day > 0 || d.year > 0 || isName(question, w) {
			dates = append(dates, d)
		}
	}
	for _, pattern := range []*regexp.Regexp{writtenDate, chineseDate} {
		for _, m := range pattern.FindAllStringSubmatch(question, -1) {
			var d date
			for i, n := range []*int{&d.year, &d.month, &d.day} {
				*n, _ = strconv.Atoi(m[i+1]) // "" is 0
			}
			dates = append(dates, d)
		}
	}
	return dates
}

// factor is what a message of a time counts more where the question names its day,
// the day before it, or its month. People tell today of yesterday.
func (a asked) factor(unix uint32) (factor float64) {
	factor = 1
	if len(a.dates) == 0 || unix == 0 {
		return factor
	}
	at := time.Unix(int64(unix), 0).UTC()
	for _, d := range a.dates {
		switch {
		case d.day > 0 && (d.on(at) || d.on(at.AddDate(0, 0, -1))):
			return dayFactor
		case int(at.Month()) == d.month && (d.year == 0 || d.year == at.Year()):
			factor = monthFactor
		}
	}
	return factor
}

func (d date) on(at time.Time) bool {
	return at.Day() == d.day && int(at.Month()) == d.month && (d.year == 0 || d.year == at.Year())
}
