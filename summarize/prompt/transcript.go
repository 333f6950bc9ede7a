package prompt

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// A transcript is messages as a summarizer reads them:
//
//	on Monday 2026-05-04
//	user "Ada":
//	| Which flights are there on the 12th?
//	file "plan.md":
//	| # Plan
//	assistant:
//	| Let me look.
//	assistant calls search_flights: {"from":"JFK"}
//	result of search_flights (error, exit status 28):
//	| timeout
//
// Every line of what somebody wrote begins with a mark, and no other line does,
// so that text can't be taken for a line of the transcript's own. What stands
// on such a line, a tool's name and its arguments, has no line breaks. Calls of one
// tool in one message are numbered, "read (call 2)", and so are their results.
const quoteMark = "|"

// quotedLines matches how a message begins in a transcript. A table's row is
// no quoted line.
var quotedLines = regexp.MustCompile(`(?m)^(?:(?:system|developer|user|assistant|tool)(?: "[^"\n]*")?(?: refuses)?|result of (?:\S+|"[^"\n]*"|an unknown tool)(?: \(call \d+\))?(?: \((?:error)?(?:, )?(?:exit status -?\d+)?\))?):\n\|(?: .*[^|\s]\s*)?$`)

// limits bound what one message brings into a transcript, in characters.
// The middle of what is longer is cut out.
type limits struct {
	text      int // of a message
	arguments int // of one tool call
	result    int // of one tool call
	file      int // of one file
}

// fullLimits are those of a summarizer with a window as usual. Of what tools
// gave, the assistant says in words what mattered: see CutResult.
var fullLimits = limits{text: 40_000, arguments: 500, result: 2_000, file: 8_000}

// mostFile is what a file brings where there is room.
const mostFile = 64_000

// maxNameCharacters bounds the names of participants, tools and attachments.
const maxNameCharacters = 80

// A transcriber writes messages down one after the other. It remembers the
// calls, for the sake of the results' names, and the day.
type transcriber struct {
	in     Input
	limits limits
	called map[string]string // tool by call id
	day    string            // of the message before
}

func newTranscriber(limits limits, in Input) *transcriber {
	return &transcriber{limits: limits, in: in, called: map[string]string{}}
}

func (t *transcriber) messages(messages []tree.Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(t.message(m))
	}
	return b.String()
}

// message writes one message, in whole lines.
func (t *transcriber) message(m tree.Message) string {
	said := t.in.Read(m)
	var b strings.Builder
	t.dayLine(&b, m)
	speaker := t.speaker(m.Role, said.Name)
	switch {
	case m.Role == tree.RoleTool:
		tool := t.called[said.CallID]
		if tool == "" {
			tool = "an unknown tool"
		}
		label := "result of " + tool
		if ended := said.Ended(); ended != "" {
			label += " (" + ended + ")"
		}
		t.quote(&b, label, CutResult(said.Text, t.limits.result))
	case said.Text != "" || len(said.Calls) == 0 && said.Refusal == "":
		if whole, stays := t.in.Stays[m.ID]; stays {
			speaker += stayMark[whole]
		}
		t.quote(&b, speaker, CutMiddle(said.Text, t.limits.text))
	}
	for _, f := range said.Files {
		t.quote(&b, "file "+t.quoted(f.Name), CutMiddle(f.Text, t.limits.file))
	}
	speaker = t.speaker(m.Role, said.Name)
	if said.Refusal != "" {
		t.quote(&b, speaker+" refuses", CutMiddle(said.Refusal, t.limits.text))
	}
	of := map[string]int{} // calls by tool
	for _, call := range said.Calls {
		of[call.Name]++
	}
	nth := map[string]int{}
	for _, call := range said.Calls {
		tool := t.toolName(call.Name)
		if nth[call.Name]++; of[call.Name] > 1 {
			tool += fmt.Sprintf(" (call %d)", nth[call.Name])
		}
		t.called[call.ID] = tool
		limit := t.limits.arguments
		if t.in.newest[call.ID] {
			limit *= newestShare
		}
		arguments := cutArguments(call.Arguments, limit)
		b.WriteString(speaker + " calls " + tool + ": " + t.oneLine(arguments, len(arguments)) + "\n")
	}
	return b.String()
}

// dayLine writes the day of a message, unless it is that of the message before.
func (t *transcriber) dayLine(b *strings.Builder, m tree.Message) {
	if m.CreatedAt.IsZero() {
		return
	}
	if day := m.CreatedAt.UTC().Format("Monday 2006-01-02"); day != t.day {
		b.WriteString("on " + day + "\n")
		t.day = day
	}
}

// stayMark marks a message that stays beside the summary, by whether all of it does.
var stayMark = map[bool]string{true: " (stays word for word)", false: " (stays, its middle cut out)"}

// quote writes text under a label, each line with the mark.
func (t *transcriber) quote(b *strings.Builder, label, text string) {
	if text == "" {
		b.WriteString(label + ": (empty)\n")
		return
	}
	b.WriteString(label + ":\n")
	quoteText(b, escapeText(text, t.in.Nonce))
}

// quoteText writes each line of text with the mark.
func quoteText(b *strings.Builder, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(quoteMark)
		if line != "" {
			b.WriteByte(' ')
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
}

// speaker is the label of who speaks. The store takes no other roles, and a
// name is quoted, so that it can't pass for one.
func (t *transcriber) speaker(role tree.Role, name string) string {
	if name == "" {
		return string(role)
	}
	return string(role) + " " + t.quoted(name)
}

// quoted is a name between quotation marks.
func (t *transcriber) quoted(name string) string {
	return `"` + strings.ReplaceAll(t.oneLine(name, maxNameCharacters), `"`, `'`) + `"`
}

// plainName is what the chat-completions API takes for a tool's name, dots and
// colons of some providers included.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}$`)

// toolName is a tool's name; an unusual one is quoted.
func (t *transcriber) toolName(name string) string {
	switch {
	case name == "":
		return "an unknown tool"
	case plainName.MatchString(name) && !strings.HasSuffix(name, ":") && escapeText(name, t.in.Nonce) == name:
		return name
	}
	return t.quoted(name)
}

// oneLine makes text fit for a line that has no mark.
func (t *transcriber) oneLine(text string, limit int) string {
	text = strings.ReplaceAll(CutMiddle(text, limit), "\r\n", "\n")
	return strings.TrimSpace(escapeText(breaksToSpaces(text), t.in.Nonce))
}
