package prompt

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// A transcript is messages as a summarizer reads them:
//
//	user "Ada":
//	| Which flights are there?
//	assistant:
//	| Let me look.
//	assistant calls search_flights: {"from":"JFK"}
//	result of search_flights (error, exit status 28):
//	| timeout
//
// Every line of what somebody wrote begins with a mark, and no other line does,
// so that text can't be taken for a line of the transcript's own. What stands
// on such a line, a tool's name and its arguments, has no line breaks.
const quoteMark = "|"

// quotedLines matches how a message begins in a transcript. A table's row is
// no quoted line.
var quotedLines = regexp.MustCompile(`(?m)^(?:(?:system|developer|user|assistant|tool)(?: "[^"\n]*")?(?: refuses)?|result of (?:\S+|"[^"\n]*"|an unknown tool)(?: \((?:error)?(?:, )?(?:exit status -?\d+)?\))?):\n\|(?: .*[^|\s]\s*)?$`)

// limits bound what one message brings into a transcript, in characters.
// The middle of what is longer is cut out.
type limits struct {
	text      int // of a message
	arguments int // of one tool call
	result    int // of one tool call
}

// fullLimits are those of a summarizer with a window as usual. Of what tools
// gave, the assistant says in words what mattered: see CutResult.
var fullLimits = limits{text: 40_000, arguments: 500, result: 2_000}

// maxNameCharacters bounds the names of participants, tools and attachments.
const maxNameCharacters = 80

// A transcriber writes messages down one after the other. It remembers the
// calls, for the sake of the results' names.
type transcriber struct {
	limits limits
	nonce  string
	called map[string]string // tool by call id
}

func newTranscriber(limits limits, nonce string) *transcriber {
	return &transcriber{limits: limits, nonce: nonce, called: map[string]string{}}
}

func transcribe(messages []tree.Message, limits limits, nonce string) string {
	t := newTranscriber(limits, nonce)
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(t.message(m))
	}
	return b.String()
}

// message writes one message, in whole lines.
func (t *transcriber) message(m tree.Message) string {
	said := Read(m)
	var b strings.Builder
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
		t.quote(&b, t.speaker(m.Role, said.Name), CutMiddle(said.Text, t.limits.text))
	}
	if said.Refusal != "" {
		t.quote(&b, t.speaker(m.Role, said.Name)+" refuses", CutMiddle(said.Refusal, t.limits.text))
	}
	for _, call := range said.Calls {
		tool := t.toolName(call.Name)
		t.called[call.ID] = tool
		b.WriteString(t.speaker(m.Role, said.Name) + " calls " + tool + ": " + t.oneLine(compactJSON(call.Arguments), t.limits.arguments) + "\n")
	}
	return b.String()
}

// quote writes text under a label, each line with the mark.
func (t *transcriber) quote(b *strings.Builder, label, text string) {
	if text == "" {
		b.WriteString(label + ": (empty)\n")
		return
	}
	b.WriteString(label + ":\n")
	quoteText(b, escapeText(text, t.nonce))
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
	return string(role) + ` "` + strings.ReplaceAll(t.oneLine(name, maxNameCharacters), `"`, `'`) + `"`
}

// plainName is what the chat-completions API takes for a tool's name, dots and
// colons of some providers included.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}$`)

// toolName is a tool's name; an unusual one is quoted.
func (t *transcriber) toolName(name string) string {
	switch {
	case name == "":
		return "an unknown tool"
	case plainName.MatchString(name) && !strings.HasSuffix(name, ":") && escapeText(name, t.nonce) == name:
		return name
	}
	return `"` + strings.ReplaceAll(t.oneLine(name, maxNameCharacters), `"`, `'`) + `"`
}

// oneLine makes text fit for a line that has no mark.
func (t *transcriber) oneLine(text string, limit int) string {
	text = strings.ReplaceAll(CutMiddle(text, limit), "\r\n", "\n")
	return strings.TrimSpace(escapeText(breaksToSpaces(text), t.nonce))
}

// compactJSON takes the spaces out of arguments that are JSON, which a model's
// need not be. Long ones stay as they are, since they are cut anyway.
func compactJSON(arguments string) string {
	var b bytes.Buffer
	if len(arguments) > 1<<16 || json.Compact(&b, []byte(arguments)) != nil {
		return arguments
	}
	return b.String()
}
