// Package prompt makes the input of a summarizer, and a message from its
// answer. It has the transcript of the messages to summarize, the fence around
// the transcript, the texts of the task, and the checks that an answer is a
// summary and nothing else.
//
// Text of people, models and tools is data here. It stands in lines with a
// mark, between tags with a nonce, and is escaped, so that no text can end its
// fence or look like a line of ours. [Next] makes the prompt of one call.
// [Step.Accept] and [Clean] judge an answer. [Wrap] makes a summary's message
// of it, and [Unwrap] returns the text again.
//
// The package calls no model and stores nothing.
package prompt

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

//go:embed texts/*.txt
var textFiles embed.FS

// texts are the sentences of a prompt, one file for each of its
// messages.
var texts = template.Must(template.ParseFS(textFiles, "texts/*.txt"))

// A part says what a message of a prompt is for. Its value is the name
// of the file with its text, and the name of the tag in it.
type part string

const (
	partSystem    part = "system"
	partPrior     part = "prior"     // only if there is one
	partKept      part = "kept"      // what stays word for word beside the summary, from before the fold; only if there is any
	partLeaving   part = "leaving"   // what stood so, and is summarized now; only if there is any
	partFold      part = "fold"      // the messages to summarize
	partCutoff    part = "cutoff"    // the marker: always a message of its own
	partLookAhead part = "lookahead" // only if there is any
	partClosing   part = "closing"   // what to do, with the caller's instructions
	partShorten   part = "shorten"   // an answer that is too long, in a prompt of its own
	partAnswer    part = "answer"    // of the model, which is asked again
	partAgain     part = "again"     // why

	partTurn part = "turn" // a word of the assistant's between two of the user's, as some templates take no two in a row

	partTitle        part = "title"        // the beginning of a conversation, in a prompt of its own
	partInstructions part = "instructions" // a tag within the closing message
)

// A message is one message that a summarizer gets.
type message struct {
	part part
	text string
}

// role: a system message first and never another, because some providers take
// only the first.
func (m message) role() string {
	switch m.part {
	case partSystem:
		return "system"
	case partAnswer, partTurn:
		return "assistant"
	}
	return "user"
}

// A prompt is what a summarizer gets, in order.
type prompt []message

// turn is the message of the assistant that stands between two of the user.
var turn = message{partTurn, chat.Read(chat.Acknowledgment()).Text()}

// byTurns puts a turn between the user's messages, which follow the system message.
func (p prompt) byTurns() prompt {
	out := append(make(prompt, 0, 2*len(p)), p[:2]...)
	for _, m := range p[2:] {
		out = append(out, turn, m)
	}
	return out
}

// messages gives the prompt as chat-completions message objects.
func (p prompt) messages() []json.RawMessage {
	bodies := make([]json.RawMessage, len(p))
	for i, m := range p {
		bodies[i] = messageBody(m.role(), m.text)
	}
	return bodies
}

// repeatedBy tells whether an answer is a piece of what the prompt itself says,
// or begins with it.
func (p prompt) repeatedBy(answer string) bool {
	const telling = 60 // characters that no summary shares with a prompt by chance
	for _, m := range p {
		if m.part != partSystem && m.part != partClosing {
			continue
		}
		if strings.Contains(m.text, answer) || strings.HasPrefix(answer, firstCharacters(m.text, telling)) {
			return true
		}
	}
	return false
}

// MaxInstructions is the limit of the instructions, in characters: standing
// instructions and those of a caller together.
const MaxInstructions = 8002

// buildPrompt writes down what the summarizer is asked. The same input gives
// the same prompt. With a prior summary it asks for one that takes both its
// place and the messages'.
func buildPrompt(in Input, limits limits) prompt {
	t := newTranscriber(limits, in)
	transcript := func(part part, texts ...string) message {
		return message{part, fill(part, map[string]any{"Text": fence(part, in.Nonce, strings.Join(texts, ""))})}
	}
	p := prompt{{partSystem, fill(partSystem, map[string]any{
		"Nonce": in.Nonce, "Open": string(escapeOpen), "Close": string(escapeClose),
	})}}
	if in.Prior != "" {
		p = append(p, transcript(partPrior, quoteWhole(in.Prior, in.Nonce)))
	}
	for _, earlier := range []struct {
		part
		messages []tree.Message
	}{{partKept, in.Kept}, {partLeaving, in.Leaving}} {
		if len(earlier.messages) > 0 {
			p = append(p, transcript(earlier.part, newTranscriber(earlierLimits, in).messages(earlier.messages)))
		}
	}
	var fold, lookAhead []string
	for _, m := range in.Fold {
		fold = append(fold, t.message(m))
	}
	for _, m := range in.LookAhead {
		lookAhead = append(lookAhead, t.message(m))
	}
	p = append(p, transcript(partFold, fold...))
	p = append(p, message{partCutoff, fill(partCutoff, map[string]any{"Text": "<" + tagName(partCutoff, in.Nonce) + "/>"})})
	if len(lookAhead) > 0 {
		p = append(p, transcript(partLookAhead, lookAhead...))
	}
	return append(p, message{partClosing, closing(in)}).byTurns()
}

// closing asks for the summary, in characters of the conversation's own text: a
// model doesn't know how many tokens another program counts.
func closing(in Input) string {
	_, filled := CutFilled(in.Prior)
	about := map[string]any{
		"Merge": in.Prior != "", "Filled": filled != "", "PriorCharacters": utf8.RuneCountInString(in.Prior),
		"Characters": in.characters(in.TargetTokens), "Most": in.characters(acceptSlack * in.TargetTokens),
	}
	if text := strings.TrimSpace(in.Instructions); text != "" {
		about["Instructions"] = fence(partInstructions, in.Nonce, quoteWhole(CutMiddle(text, MaxInstructions), in.Nonce))
	}
	return fill(partClosing, about)
}

// earlierLimits bound what is shown of messages that were folded before.
var earlierLimits = limits{text: 2_000, arguments: 200, result: 400, file: 400}

func quoteWhole(text, nonce string) string {
	var b strings.Builder
	quoteText(&b, escapeText(text, nonce))
	return b.String()
}

// tagName is the name of a tag in a prompt. No text can hold the nonce, so
// none can hold the tag.
func tagName(part part, nonce string) string {
	return tagWord + "-" + string(part) + "-" + nonce
}

// fence puts whole lines between the tags of a part.
func fence(part part, nonce, lines string) string {
	name := tagName(part, nonce)
	return "<" + name + ">\n" + lines + "</" + name + ">"
}

// fill fills in the text of a part. Values are put in as they are and not
// looked at for templates.
func fill(part part, values map[string]any) string {
	var b strings.Builder
	if err := texts.ExecuteTemplate(&b, string(part)+".txt", values); err != nil {
		panic(fmt.Sprintf("prompt: texts/%s.txt: %v", part, err)) // a mistake in the file, which every test meets
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// messageBody is a chat-completions message object. Its bytes depend on
// nothing but the arguments.
func messageBody(role, content string) json.RawMessage {
	raw, _ := chat.Marshal(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{role, content}) // two strings always encode
	return raw
}
