package digest

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// Bounds of what is looked at, in characters: of a message, and of a tool's
// result, whose beginning and end tell the most.
const (
	mostText   = 200_000
	mostResult = 2_000
)

// mostSpoken is how many sentences a message begins with before the rest
// counts as pasted.
const mostSpoken = 12

// A reader makes items of what a digest is to be made from.
type reader struct {
	in         prompt.Input
	items      []item
	seen       map[string]bool // lines that are there already
	wanted     map[string]bool // words of the instructions
	ahead      map[string]bool // marks in the look-ahead
	rejected   map[string]int  // marks that a correction says are wrong, with its order
	vocabulary vocabulary
	length     int  // of the longest item, in characters
	messages   int  // that the digest stands for
	unknown    bool // and a summary that doesn't say for how many it stands
	text       bool // there is any
	assisted   bool // one of the speakers is an assistant
	people     bool // several are named, and none is an assistant
	order      int
	message    int // counts messages, and lines of the prior summary
	start      int // first item of the message that is being read
}

// newReader reads for a digest of at most limit tokens.
func newReader(in prompt.Input, limit int) *reader {
	const least, most = 60, 400
	r := &reader{
		in: in, vocabulary: vocabulary{}, length: min(max(2*limit, least), most), seen: map[string]bool{}, ahead: map[string]bool{}, rejected: map[string]int{},
		messages: len(in.Fold),
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(prompt.CutMiddle(in.Instructions, prompt.MaxInstructions)), notWordRune) {
		if utf8.RuneCountInString(word) >= 4 {
			if r.wanted == nil {
				r.wanted = map[string]bool{}
			}
			r.wanted[word] = true
		}
	}
	for _, m := range in.LookAhead {
		for s := range sentences(prompt.CutMiddle(prompt.Read(m).Text, mostResult)) {
			for _, mark := range marksOf(s.text) {
				r.ahead[mark] = true
			}
		}
	}
	return r
}

func notWordRune(r rune) bool { return !isWordRune(r) }

// intro is the first line. It is long enough that with it every digest is a
// summary by its length.
func (r *reader) intro() string {
	if r.unknown {
		return fmt.Sprintf("Extract of an earlier summary and %d messages, made without a language model.\n", r.messages)
	}
	return fmt.Sprintf("Extract of %d earlier messages, made without a language model.\n", r.messages)
}

var introLine = regexp.MustCompile(`^Extract of (an earlier summary and )?(\d{1,9}) (?:earlier )?messages, made without a language model\.$`)

// readFold makes items of the messages.
func (r *reader) readFold(messages []tree.Message) {
	said := make([]prompt.Said, len(messages))
	lastUser := -1
	names := map[string]bool{}
	for i, m := range messages {
		said[i] = prompt.Read(m)
		r.text = r.text || strings.TrimSpace(prompt.Line(said[i].Text)) != ""
		if m.Role == tree.RoleUser {
			lastUser = i
		}
		r.assisted = r.assisted || m.Role == tree.RoleAssistant
		if speaker := speakerOf(m.Role, said[i].Name); speaker != string(m.Role) {
			names[speaker] = true
		}
	}
	r.people = len(names) > 1 && !r.assisted
	confirmed := r.confirmations(messages, said)
	begun := 0 // user messages that said something
	calls := map[string]string{}
	question := "" // that the message before ends with
	speaker := ""
	for i, m := range messages {
		about := messageFacts{
			role: m.Role, speaker: speakerOf(m.Role, said[i].Name), confirmed: confirmed[i], failed: said[i].Failed, last: i == lastUser,
			recency: 2 / float64(len(messages)-i+1),
		}
		if m.Role == tree.RoleUser && r.in.Prior == "" && begun < len(openingWorth) && strings.TrimSpace(said[i].Text) != "" {
			about.opening = openingWorth[begun]
			begun++
		}
		limit := mostText
		switch {
		case m.Role == tree.RoleTool:
			about.context, about.ended = calls[said[i].CallID], said[i].Ended()
			said[i].Text = prompt.CutResult(said[i].Text, mostResult)
		case about.speaker != speaker:
			about.context = question
		}
		r.message++
		r.start = len(r.items)
		question, speaker = "", about.speaker
		for _, text := range []string{said[i].Text, said[i].Refusal} {
			question = cmp.Or(r.readText(prompt.CutMiddle(text, limit), about, begun == 1 && about.opening > 0), question)
		}
		for _, call := range said[i].Calls {
			text := strings.TrimSpace("called " + call.Name + " " + strings.Join(strings.Fields(prompt.CutMiddle(call.Arguments, 200)), " "))
			calls[call.ID] = text
			r.add(sentence{text: text, code: true}, about)
		}
		r.favourNews()
	}
}

// favourNews takes worth from the sentences of a message that says little. Among
// people without an assistant such a message mostly answers another one. A
// message that says much tells news.
func (r *reader) favourNews() {
	const much, least = 25, 0.25
	if r.assisted {
		return
	}
	sum := 0
	for _, it := range r.items[r.start:] {
		sum += says(it.terms)
	}
	for i := r.start; i < len(r.items); i++ {
		r.items[i].worth *= least + (1-least)*min(1, float64(sum)/much)
	}
}

// readText makes items of a message's text, and gives the question that it
// ends with. The text under a heading, or after a colon, has that for its
// context.
func (r *reader) readText(text string, about messageFacts, first bool) (question string) {
	lead := ""
	n := 0
	ended := about.ended != "" && about.context != ""
	for s := range sentences(text) {
		question = ""
		if s.lead {
			lead = s.text
			continue
		}
		if ended && prompt.TellsStatus(s.text) {
			continue // the line of the call says so
		}
		if lead != "" {
			about.context, about.lead = lead, true
		}
		about.first, about.pasted = first, n >= mostSpoken
		if r.add(s, about); first && len(r.items) > r.start {
			first = r.items[len(r.items)-1].stub
		}
		if strings.HasSuffix(s.text, "?") || strings.HasSuffix(s.text, "？") || strings.HasSuffix(s.text, "؟") {
			question = s.text
		}
		about.context = ""
		n++
	}
	if n == 0 && lead != "" { // a message of nothing else
		about.first = first
		r.add(sentence{text: lead}, about)
	}
	return question
}

// plainSpeaker is a participant's name that a digest's line can begin with.
var plainSpeaker = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{M}\p{N}_.-]{0,39}$`)

func speakerOf(role tree.Role, name string) string {
	if plainSpeaker.MatchString(name) && name == prompt.Line(name) {
		return string(role) + " " + name
	}
	return string(role)
}

// confirmations tells of each message whether what it says is done was
// confirmed: by a tool's result right before it, or by what the user said next.
func (r *reader) confirmations(messages []tree.Message, said []prompt.Said) []bool {
	confirmed := make([]bool, len(messages))
	user := false // whether the next user message confirms
	for _, m := range r.in.LookAhead {
		if m.Role == tree.RoleUser {
			user = confirms(prompt.Read(m).Text)
			break
		}
	}
	for i := len(messages) - 1; i >= 0; i-- {
		confirmed[i] = user || i > 0 && messages[i-1].Role == tree.RoleTool && !said[i-1].Failed
		if messages[i].Role == tree.RoleUser {
			user = confirms(said[i].Text)
		}
	}
	return confirmed
}

// confirms tells whether a user's message begins with a yes and no but.
func confirms(text string) bool {
	for s := range sentences(text) {
		found := cues.find(lowerText(s.text))
		return found&cueConfirm != 0 && found&cueCorrection == 0
	}
	return false
}

// lowerText is text as the phrases are written.
func lowerText(text string) string {
	text = strings.ToLower(text)
	if strings.Contains(text, "’") {
		text = strings.ReplaceAll(text, "’", "'")
	}
	return text
}

// add makes an item of a sentence, unless there is one like it.
func (r *reader) add(s sentence, about messageFacts) {
	text := oneLine(s.text)
	if !s.code && strings.Count(text, "**")%2 == 0 {
		text = strings.ReplaceAll(text, "**", "") // bold letters
	}
	if text == "" {
		return
	}
	r.text = true
	r.order++
	lower := lowerText(text)
	context := oneLine(about.context)
	if before := r.corrected(lower, about); before != "" {
		text = before + " " + text
		lower = lowerText(text)
	}
	it := item{speaker: about.speaker, text: text, message: r.message, order: r.order, prior: about.prior}
	key := it.speaker + "\x00" + strings.TrimRight(lower, " .!。")
	if r.seen[key] {
		return
	}
	r.seen[key] = true
	it.terms = r.vocabulary.terms(text)
	it.leans = !s.code && cues.find(lower)&cueLeans != 0
	if context != "" && (about.role == tree.RoleTool || says(it.terms) <= enough || isBare(it.terms) || (it.leans || len(text) <= shortAnswer) && !about.lead && r.assisted || about.lead && cues.find(lowerText(context))&cueTime != 0) {
		it.context = shorten(context, r.length/4, marksOf(context))
		if about.ended != "" {
			it.context += ": " + about.ended
		}
		it.terms = r.vocabulary.terms(it.piece())
	}
	r.judge(&it, lower, s.code || isCode(text), about)
	short := shortenItem(it, r.length-utf8.RuneCountInString(it.context))
	if short != it.text {
		it.text = short
		it.terms = r.vocabulary.terms(it.piece())
	}
	r.items = append(r.items, it)
}

// shortAnswer is the length, in bytes, up to which the answer to a question is
// taken to need it.
const shortAnswer = 48

// oneLine is a text without line breaks.
func oneLine(text string) string {
	text = prompt.Line(text)
	if strings.ContainsAny(text, "\n\t") || strings.Contains(text, "  ") {
		text = strings.Join(strings.Fields(text), " ")
	}
	return strings.TrimSpace(text)
}

// Lengths in bytes up to which a correction is taken to need the sentence
// before it, up to which that one is short enough to go with it, and up to which
// a sentence is taken for the end of the correction before it.
const (
	shortCorrection = 80
	shortCorrected  = 240
	shortEnd        = 32
)

// corrected takes back the sentence that a user's short correction follows in
// the same message, and gives its text: "Take the 9:15. No, the 9:45." says
// something, and its second half alone does not. Nor does the first half of "No,
// 8080 is taken. Use 8090."
func (r *reader) corrected(lower string, about messageFacts) string {
	last := len(r.items) - 1
	if about.role != tree.RoleUser || about.prior || len(lower) > shortCorrection || last < r.start || len(r.items[last].text) > shortCorrected {
		return ""
	}
	if cues.find(lower)&cueCorrection == 0 && (r.items[last].class < 3 || len(lower) > shortEnd) {
		return ""
	}
	text := r.items[last].text
	r.items = r.items[:last]
	return text
}
