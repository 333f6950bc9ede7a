package digest

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// How many characters are looked at: the beginning and the end tell the most.
const (
	mostResult = 2_000   // of a tool's result
	mostFile   = 64_000  // of an attached file
	mostText   = 200_000 // of a message
)

// A reader makes items of what a digest is to be made from.
type reader struct {
	in         prompt.Input
	counter    tokens.Counter
	items      []item
	seen       map[string]bool // lines that are there already
	vocabulary vocabulary
	asked      map[int32]bool // words of the instructions, and facts of the look-ahead
	length     int            // of the longest item, in characters
	text       bool           // there is any
	assisted   bool           // one of the speakers is an assistant, by what it does
	message    int            // counts messages, and lines of the prior summary
}

// newReader reads for a digest of at most limit tokens.
func newReader(in prompt.Input, counter tokens.Counter, limit int) *reader {
	const least, most = 60, 400 // characters of an item
	r := &reader{in: in, counter: counter, seen: map[string]bool{}, vocabulary: vocabulary{}, asked: map[int32]bool{}, length: min(max(2*limit, least), most)}
	for _, t := range r.vocabulary.terms(prompt.CutMiddle(in.Instructions, prompt.MaxInstructions), true) {
		r.asked[t.id] = t.kind > kindShort
	}
	for _, m := range in.LookAhead {
		for _, t := range r.vocabulary.terms(prompt.CutMiddle(prompt.Read(m).Text, mostResult), true) {
			r.asked[t.id] = r.asked[t.id] || t.kind > kindName
		}
	}
	return r
}

// A source is what a sentence gets from its message, or from its place in a prior
// summary.
type source struct {
	role    tree.Role // "" for a line of a prior summary that names nobody
	speaker string
	prior   bool   // from the prior summary
	decides bool   // stands under decisions and preferences
	goal    bool   // of the first message of the user, which says what he wants
	day     string // when it was said; of an item only where it tells a time
	context string // what it may need to be understood: the question that it answers, the call
	pasted  bool   // far from the beginning of a message: not said, but brought along
}

// readFold makes items of the messages.
func (r *reader) readFold(messages []tree.Message) {
	said := make([]prompt.Said, len(messages))
	for i, m := range messages {
		said[i] = r.in.Read(m)
		for _, f := range said[i].Files {
			said[i].Text += "\n" + prompt.CutMiddle(f.Text, mostFile)
		}
		r.text = r.text || oneLine(said[i].Text) != ""
	}
	r.assisted = assists(messages, said, r.assisted)
	calls := map[string]string{}
	question, speaker := "", "" // that the message before ends with, and whose it is
	goal := r.in.Prior == ""    // is still to come
	for i, m := range messages {
		text, start := said[i].Text, len(r.items)
		from := source{role: m.Role, speaker: r.speakerOf(m.Role, said[i].Name)}
		if !m.CreatedAt.IsZero() {
			from.day = m.CreatedAt.UTC().Format(time.DateOnly)
		}
		switch {
		case m.Role == tree.RoleTool:
			text, from.context = prompt.CutResult(text, mostResult), calls[said[i].CallID]
			if result := said[i].Ended(); result != "" && from.context != "" {
				from.context += ": " + result
			}
		case from.speaker != speaker:
			from.context = question
		}
		from.goal = goal && m.Role == tree.RoleUser && text != ""
		goal = goal && !from.goal
		r.message++
		question, speaker = r.readText(text, from), from.speaker
		r.readText(said[i].Refusal, from)
		for _, call := range said[i].Calls {
			line := oneLine("called " + call.Name + " " + prompt.CutMiddle(call.Arguments, 200))
			calls[call.ID] = line
			r.add(sentence{text: line, code: true}, from)
		}
		if !r.assisted {
			favourNews(r.items[start:])
		}
	}
}

// assists tells whether one of the speakers is an assistant. One who answers many
// times, calls no tools, and is brief, is a person. Where none answers, it is as before.
func assists(messages []tree.Message, said []prompt.Said, before bool) bool {
	const many, long = 20, 400 // answers, and bytes of one on average
	bytes, answers := 0, 0
	for i, m := range messages {
		if m.Role == tree.RoleTool || len(said[i].Calls) > 0 {
			return true
		}
		if m.Role == tree.RoleAssistant {
			bytes += len(said[i].Text)
			answers++
		}
	}
	if answers < many {
		return before || answers > 0
	}
	return bytes > long*answers
}

// favourNews takes worth from the sentences of a message that says little. Among
// people such a message mostly answers another one, and one that says much tells
// news.
func favourNews(items []item) {
	const much, least = 45, 0.25
	sum := 0.0
	for _, it := range items {
		for _, t := range it.terms {
			sum += kindWeights[t.kind]
		}
	}
	for i := range items {
		items[i].worth *= least + (1-least)*min(1, sum/much)
	}
}

// readText makes items of a message's text, and gives the question that it
// ends with.
func (r *reader) readText(text string, from source) (question string) {
	const spoken = 12 // sentences
	n := 0
	for s := range sentences(prompt.CutMiddle(text, mostText)) {
		if from.context != "" && from.role == tree.RoleTool && prompt.TellsStatus(s.text) {
			continue // the line of the call says so
		}
		from.pasted = from.pasted || n >= spoken
		r.add(s, from)
		if question = ""; asks(s.text) {
			question = s.text
		}
		from.context, from.goal = "", false
		from.pasted = from.pasted || s.cut // what runs on without an end wasn't said
		n++
	}
	return question
}

// speakerOf is who said a message: among people the name alone, else the role before it.
// Blanks of a name become underscores there, so that a later digest finds its end.
func (r *reader) speakerOf(role tree.Role, name string) string {
	words := strings.Fields(name)
	if bare := strings.Join(words, " "); !r.assisted && role == tree.RoleUser && priorName.MatchString(bare+": ") && !priorSpeaker.MatchString(bare+": ") && bare == prompt.Line(bare) {
		return bare
	}
	speaker := string(role) + " " + strings.Join(words, "_")
	if priorSpeaker.MatchString(speaker+": ") && speaker == prompt.Line(speaker) {
		return speaker
	}
	return string(role)
}

// add makes an item of a sentence, unless there is one like it.
func (r *reader) add(s sentence, from source) {
	const short, label, dayTokens = 64, 1, 8 // characters; tokens that tell who speaks, which most lines don't, and the day
	text := oneLine(s.text)
	if !s.code && strings.Count(text, "**")%2 == 0 {
		text = strings.ReplaceAll(text, "**", "") // bold letters
	}
	lower := strings.ReplaceAll(strings.ToLower(text), "’", "'")
	key := from.speaker + "\x00" + strings.TrimRight(lower, " .!。")
	if text == "" || r.seen[key] {
		return
	}
	r.seen[key], r.text = true, true
	cue := findCues(lower)
	it := item{source: from, text: text, message: r.message, code: s.code, terms: r.vocabulary.terms(text, true)}
	it.context, it.day = "", ""
	// A result needs its call, and a short answer its question.
	if from.role == tree.RoleTool || r.assisted && utf8.RuneCountInString(text) <= short {
		it.context = shorten(oneLine(from.context), r.length/4)
	}
	if cue&cueTime != 0 && from.day != "" && !s.code && !strings.Contains(text, from.day[:4]) {
		it.day, it.size = from.day, dayTokens
	}
	it.text = shorten(it.text, r.length-utf8.RuneCountInString(it.context))
	r.judge(&it, lower, cue, s.code)
	if it.context != "" || it.text != text {
		it.terms = r.vocabulary.terms(it.piece(), true)
	}
	it.size += r.counter.Count("\n  "+it.piece()) + label
	r.items = append(r.items, it)
}

// oneLine is a text without line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(prompt.Line(text)), " ") }

// shorten keeps a text's beginning. The result is no longer than length, in
// characters, so that the next digest leaves it as it is.
func shorten(text string, length int) string {
	const ellipsis = " … "
	if utf8.RuneCountInString(text) <= length {
		return text
	}
	head := text[:prompt.StartOfCluster(text, prompt.ByteOffset(text, max(length-len(ellipsis), 0)))]
	if space := strings.LastIndexByte(head, ' '); space > len(head)/2 {
		head = head[:space]
	}
	return strings.TrimSpace(head + ellipsis)
}

var roleWorth = map[tree.Role]float64{"": 2, tree.RoleUser: 2, tree.RoleSystem: 1.8, tree.RoleDeveloper: 1.8, tree.RoleAssistant: 1, tree.RoleTool: 0.6}

// judge gives an item its section and worth.
func (r *reader) judge(it *item, lower string, cue cueSet, code bool) {
	const little = 32 // characters
	role := it.role
	if role == tree.RoleAssistant && !r.assisted {
		role = tree.RoleUser
	}
	// What a model or a tool says about itself decides nothing for the user.
	byUser := role == tree.RoleUser || role == ""
	question := asks(lower)
	said := byUser && r.assisted && !code && !question && !it.pasted
	it.rule = said && cue&(cueCorrection|cueDecision|cueBan) != 0 || it.decides
	it.decides = it.decides || !it.prior && (it.rule || said && (cue&cueWish != 0 || it.goal))
	it.worth = roleWorth[role]
	if it.goal {
		it.worth *= 4
	}
	if it.rule && cue&(cueBan|cueCorrection) != 0 {
		it.worth *= 2
	}
	if r.assisted && cue&cueTime != 0 { // people tell of days all the time
		it.worth *= 2
	}
	switch {
	case code:
		it.worth *= 0.2
	case cue&cueIdle != 0 && utf8.RuneCountInString(lower) < little:
		it.worth = 0
	case it.pasted, question && r.assisted:
		it.worth *= 0.5
	}
}

// asks tells a question.
func asks(text string) bool {
	return strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？") || strings.HasSuffix(text, "؟")
}
