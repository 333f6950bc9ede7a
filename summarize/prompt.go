package summarize

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
)

//go:embed prompts/*.txt
var promptFiles embed.FS

// promptTexts are the sentences of a prompt, one file for each of its
// messages.
var promptTexts = template.Must(template.ParseFS(promptFiles, "prompts/*.txt"))

// A promptPart says what a message of a prompt is for. Its value is the name
// of the file with its text, and the name of the tag in it.
type promptPart string

const (
	partSystem    promptPart = "system"
	partPrior     promptPart = "prior"     // only if there is one
	partFold      promptPart = "fold"      // the messages to summarize
	partCutoff    promptPart = "cutoff"    // the marker: always a message of its own
	partLookAhead promptPart = "lookahead" // only if there is any
	partClosing   promptPart = "closing"   // what to do, with the caller's instructions

	partInstructions promptPart = "instructions" // a tag within the closing message
)

// A promptMessage is one message that a summarizer gets.
type promptMessage struct {
	part promptPart
	text string
}

// role: a system message first and never another, because some providers take
// only the first.
func (m promptMessage) role() string {
	if m.part == partSystem {
		return "system"
	}
	return "user"
}

// A prompt is what a summarizer gets, in order.
type prompt []promptMessage

// messages gives the prompt as chat-completions message objects.
func (p prompt) messages() []json.RawMessage {
	bodies := make([]json.RawMessage, len(p))
	for i, m := range p {
		bodies[i] = messageBody(m.role(), m.text)
	}
	return bodies
}

// maxInstructions bounds a caller's instructions, in characters.
const maxInstructions = 4000

// buildPrompt writes down what the summarizer is asked. The same input gives
// the same prompt. With a prior summary it asks for one that takes both its
// place and the messages'.
func buildPrompt(in Input, limits promptLimits) prompt {
	t := newTranscriber(limits, in.Nonce)
	transcript := func(part promptPart, texts ...string) promptMessage {
		return promptMessage{part, fill(part, map[string]any{"Text": fence(part, in.Nonce, strings.Join(texts, ""))})}
	}
	p := prompt{{partSystem, fill(partSystem, map[string]any{
		"Nonce": in.Nonce, "Open": string(escapeOpen), "Close": string(escapeClose),
	})}}
	if in.Prior != "" {
		p = append(p, transcript(partPrior, quoteWhole(in.Prior, in.Nonce)))
	}
	var fold, lookAhead []string
	for _, m := range in.Fold {
		fold = append(fold, t.message(m))
	}
	for _, m := range in.LookAhead {
		lookAhead = append(lookAhead, t.message(m))
	}
	p = append(p, transcript(partFold, fold...))
	p = append(p, promptMessage{partCutoff, fill(partCutoff, map[string]any{"Text": "<" + tagName(partCutoff, in.Nonce) + "/>"})})
	if len(lookAhead) > 0 {
		p = append(p, transcript(partLookAhead, lookAhead...))
	}
	return append(p, promptMessage{partClosing, closing(in)})
}

func closing(in Input) string {
	about := map[string]any{
		"Merge": in.Prior != "", "Condense": condense(in.PriorTokens, in.TargetTokens),
		"PriorTokens": in.PriorTokens, "TargetTokens": in.TargetTokens,
		"Words": in.TargetTokens * 3 / 4,
	}
	if text := strings.TrimSpace(in.Instructions); text != "" {
		about["Instructions"] = fence(partInstructions, in.Nonce, quoteWhole(cutMiddle(text, maxInstructions), in.Nonce))
	}
	return fill(partClosing, about)
}

// condense says how hard to condense a prior summary, by how much of the
// target it takes up: "keep", "oldest" or "resolved".
func condense(priorTokens, targetTokens int) string {
	switch percent := priorTokens * 100 / max(targetTokens, 1); {
	case percent < 60:
		return "keep"
	case percent <= 85:
		return "oldest"
	}
	return "resolved"
}

func quoteWhole(text, nonce string) string {
	var b strings.Builder
	quoteText(&b, escapeText(text, nonce))
	return b.String()
}

// tagName is the name of a tag in a prompt. No text can hold the nonce, so
// none can hold the tag.
func tagName(part promptPart, nonce string) string {
	return tagWord + "-" + string(part) + "-" + nonce
}

// fence puts whole lines between the tags of a part.
func fence(part promptPart, nonce, lines string) string {
	name := tagName(part, nonce)
	return "<" + name + ">\n" + lines + "</" + name + ">"
}

// fill fills in the text of a part. Values are put in as they are and not
// looked at for templates.
func fill(part promptPart, values map[string]any) string {
	var b strings.Builder
	if err := promptTexts.ExecuteTemplate(&b, string(part)+".txt", values); err != nil {
		panic(fmt.Sprintf("summarize: prompts/%s.txt: %v", part, err)) // a mistake in the file, which every test meets
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// messageBody is a chat-completions message object. Its bytes depend on
// nothing but the arguments.
func messageBody(role, content string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}{role, content}) // two strings always encode
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
