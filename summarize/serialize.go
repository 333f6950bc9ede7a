package summarize

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
//	result of search_flights (error):
//	| timeout
//
// Every line of what somebody wrote begins with a mark, and no other line does,
// so that text can't be taken for a line of the transcript's own. What stands
// on such a line, a tool's name and its arguments, has no line breaks.
const quoteMark = "|"

// quotedLines matches how a message begins in a transcript. A table's row is
// no quoted line.
var quotedLines = regexp.MustCompile(`(?m)^(?:(?:system|developer|user|assistant|tool)(?: "[^"\n]*")?(?: refuses)?|result of (?:\S+|"[^"\n]*"|an unknown tool)(?: \(error\))?):\n\|(?: .*[^|\s]\s*)?$`)

// promptLimits bound what one message brings into a transcript, in characters.
// The middle of what is longer is cut out.
type promptLimits struct {
	text      int // of a message
	arguments int // of one tool call
	result    int // of one tool call
}

// fullLimits are those of a summarizer with a window as usual. Of what tools
// gave, the assistant says in words what mattered.
var fullLimits = promptLimits{text: 40_000, arguments: 500, result: 2_000}

// maxNameCharacters bounds the names of participants, tools and attachments.
const maxNameCharacters = 80

// A transcriber writes messages down one after the other. It remembers the
// calls, for the sake of the results' names.
type transcriber struct {
	limits promptLimits
	nonce  string
	called map[string]string // tool by call id
}

func newTranscriber(limits promptLimits, nonce string) *transcriber {
	return &transcriber{limits: limits, nonce: nonce, called: map[string]string{}}
}

// transcribe writes all messages.
func transcribe(messages []tree.Message, limits promptLimits, nonce string) string {
	t := newTranscriber(limits, nonce)
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(t.message(m))
	}
	return b.String()
}

// message writes one message, in whole lines.
func (t *transcriber) message(m tree.Message) string {
	said := readSpoken(m)
	var b strings.Builder
	switch {
	case m.Role == tree.RoleTool:
		tool := t.called[said.callID]
		if tool == "" {
			tool = "an unknown tool"
		}
		label := "result of " + tool
		if said.failed {
			label += " (error)"
		}
		t.quote(&b, label, cutMiddle(said.text, t.limits.result))
	case said.text != "" || len(said.calls) == 0 && said.refusal == "":
		t.quote(&b, t.speaker(m.Role, said.name), cutMiddle(said.text, t.limits.text))
	}
	if said.refusal != "" {
		t.quote(&b, t.speaker(m.Role, said.name)+" refuses", cutMiddle(said.refusal, t.limits.text))
	}
	for _, call := range said.calls {
		tool := t.toolName(call.name)
		t.called[call.id] = tool
		b.WriteString(t.speaker(m.Role, said.name) + " calls " + tool + ": " + t.oneLine(compactJSON(call.arguments), t.limits.arguments) + "\n")
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
	text = escapeText(cutMiddle(text, limit), t.nonce)
	return strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
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
