package digest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
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

// mostResultItems is how many sentences or lines of one tool's result may
// get into a digest. What matters of it, somebody says in words.
const mostResultItems = 3

// A reader makes items of what a digest is to be made from.
type reader struct {
	in         prompt.Input
	items      []item
	seen       map[string]bool // lines that are there already
	wanted     map[string]bool // words of the instructions
	ahead      map[string]bool // marks in the look-ahead
	rejected   map[string]int  // marks that a correction says are wrong, with its order
	messages   int             // that the digest stands for
	unknown    bool            // and a summary that doesn't say for how many it stands
	characters int             // of Fold
	text       bool            // there is any
	order      int
	message    int // first item of the message that is being read
}

func newReader(in prompt.Input) *reader {
	r := &reader{
		in: in, seen: map[string]bool{}, ahead: map[string]bool{}, rejected: map[string]int{},
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
			marks, _ := marksOf(s.text)
			for _, mark := range marks {
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
	for i, m := range messages {
		said[i] = prompt.Read(m)
		r.characters += len(said[i].Text)
		r.text = r.text || strings.TrimSpace(prompt.Line(said[i].Text)) != ""
		if m.Role == tree.RoleUser {
			lastUser = i
		}
	}
	confirmed := r.confirmations(messages, said)
	begun := 0 // user messages that said something
	for i, m := range messages {
		about := messageFacts{
			role: m.Role, speaker: speakerOf(m.Role, said[i].Name), confirmed: confirmed[i], failed: said[i].Failed,
			recency: 8 * (i + 1) / len(messages), last: i == lastUser,
		}
		if m.Role == tree.RoleUser && r.in.Prior == "" && begun < len(openingScores) && strings.TrimSpace(said[i].Text) != "" {
			about.opening = openingScores[begun]
			begun++
		}
		limit := mostText
		if m.Role == tree.RoleTool {
			limit = mostResult
		}
		before := len(r.items)
		r.message = before
		for _, text := range []string{said[i].Text, said[i].Refusal} {
			n := 0
			for s := range sentences(prompt.CutMiddle(text, limit)) {
				about.first, about.pasted = begun == 1 && about.opening > 0 && n == 0, n >= mostSpoken
				r.add(s, about)
				n++
			}
			about.first, about.pasted = false, false
		}
		if m.Role == tree.RoleTool {
			r.keepBest(before, mostResultItems)
		}
		for _, call := range said[i].Calls {
			text := strings.TrimSpace("called " + call.Name + " " + strings.Join(strings.Fields(prompt.CutMiddle(call.Arguments, 200)), " "))
			r.add(sentence{text: text, code: true}, about)
		}
	}
}

// keepBest drops all but the n best of the items from the one at start on.
func (r *reader) keepBest(start, n int) {
	if len(r.items)-start <= n {
		return
	}
	added := r.items[start:]
	slices.SortStableFunc(added, byScore)
	added = added[:n]
	slices.SortFunc(added, func(a, b item) int { return cmp.Compare(a.order, b.order) })
	r.items = r.items[:start+n]
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
	text := prompt.Line(s.text)
	if strings.ContainsAny(text, "\n\t") || strings.Contains(text, "  ") {
		text = strings.Join(strings.Fields(text), " ")
	}
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	r.text = true
	r.order++
	lower := lowerText(text)
	if before := r.corrected(lower, about); before != "" {
		text = before + " " + text
		lower = lowerText(text)
	}
	it := item{speaker: about.speaker, text: text, order: r.order, prior: about.prior}
	key := it.speaker + "\x00" + strings.TrimRight(lower, " .!。")
	if r.seen[key] {
		return
	}
	r.seen[key] = true
	r.judge(&it, lower, s.code, about)
	r.items = append(r.items, it)
}

// Lengths in bytes up to which a correction is taken to need the sentence
// before it, and that one is short enough to go with it.
const (
	shortCorrection = 80
	shortCorrected  = 240
)

// corrected takes back the sentence that a user's short correction follows in
// the same message, and gives its text: "Take the 9:15. No, the 9:45." says
// something, and its second half alone does not.
func (r *reader) corrected(lower string, about messageFacts) string {
	last := len(r.items) - 1
	if about.role != tree.RoleUser || about.prior || len(lower) > shortCorrection || last < r.message ||
		len(r.items[last].text) > shortCorrected || cues.find(lower)&cueCorrection == 0 {
		return ""
	}
	text := r.items[last].text
	r.items = r.items[:last]
	return text
}
