package prompt

import (
	"errors"
	"github.com/coppice-chat/coppice/internal/check"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
)

func TestCleanSummary(t *testing.T) {
	t.Parallel()
	const good = "The hedge at 12 Mill Lane is to be cut on Friday."
	for _, c := range []struct {
		name, text, want string
		err              error
	}{
		{"plain", good, good, nil},
		{"spaces", "\n\n  " + good + "\t\n", good, nil},
		{"NUL", "The \x00hedge at 12 Mill Lane is to be cut.", "The hedge at 12 Mill Lane is to be cut.", nil},
		{"empty", "", "", errEmptySummary},
		{"29 characters", strings.Repeat("x", 29), "", errShortSummary},
		{"30 characters", strings.Repeat("x", 30), strings.Repeat("x", 30), nil},
		{"30 with spaces around 29", " " + strings.Repeat("x", 29) + " ", "", errShortSummary},
		{"code fence", "```\n" + good + "\n```", good, nil},
		{"two code blocks", "```go\nx := 1\n```\n" + good + "\n```\ny\n```", "```go\nx := 1\n```\n" + good + "\n```\ny\n```", nil},
		{"tags", "<summary>\n" + good + "\n</summary>", good, nil},
		{"tags in a code fence", "```xml\n<summary>\n" + good + "\n</summary>\n```", good, nil},
		{"tags that don't match", "<summary>" + good, "<summary>" + good, nil},
		{"marks before every line", "| " + good + "\n|\n| It rained.", good + "\n\nIt rained.", nil},
		{"table", "| what | when    |\n|------|---------|\n| cut  | Friday  |", "| what | when    |\n|------|---------|\n| cut  | Friday  |", nil},
		{"reasoning that was cut off", "<think>The user wants a hedge to be cut on Friday", "", errReasoning},
		{"own tags with a nonce", "<coppice-fold-0123456789abcdef>\n" + good + "\n</coppice-fold-0123456789abcdef>", good, nil},
		{"own tags inside", good + "\n<coppice-fold>\nIt rained.", "", errLeak},
		{"the marker at the end", good + "\n\n<coppice-cutoff-0123456789abcdef/>\nCUTOFF. What is to be summarized ends here.", good, nil},
		{"a tag that is talked about", "The user asks what </think> in an answer means: " + good, "The user asks what </think> in an answer means: " + good, nil},
		{"harmony's analysis alone", "<|channel|>analysis<|message|>The user wants a hedge to be cut.", "", errReasoning},
		{"a preamble", "Here is the summary of the conversation:\n\n---\n" + good, good, nil},
		{"a preamble before a code fence", "Sure! Here's a summary:\n```\n" + good + "\n```", good, nil},
		{"a preamble in Chinese", "好的，以下是对话的摘要：\n王芳住在杭州，对花生过敏，周五去看牙医。", "王芳住在杭州，对花生过敏，周五去看牙医。", nil},
		{"20 Chinese characters", "王芳住在杭州，对花生过敏，周五去看牙医。", "王芳住在杭州，对花生过敏，周五去看牙医。", nil},
		{"a heading is no preamble", "# Summary of the talk\n" + good, "# Summary of the talk\n" + good, nil},
		{"transcript", "user:\n| " + good + "\nassistant:\n| Yes.", "", errLeak},
		{"refusal", "I'm sorry, but I can't help with summarizing this.", "", ErrRefused},
		{"refusal in German", "Es tut mir leid, aber dabei kann ich nicht helfen.", "", ErrRefused},
		{"refusal in Chinese", "抱歉，我无法为您总结这段对话，因为其中包含了不适当的内容，请换一个话题再试一次。", "", ErrRefused},
		{"summary of a refusal", "The user asked for a recipe. The assistant said: I'm sorry, I can't.", "The user asked for a recipe. The assistant said: I'm sorry, I can't.", nil},
		{"long text that begins like a refusal", "I can't find fault with the plan: " + strings.Repeat("cut the hedge in winter. ", 20), "I can't find fault with the plan: " + strings.TrimSpace(strings.Repeat("cut the hedge in winter. ", 20)), nil},
		{"invalid UTF-8", good + "\xff", good + "\ufffd", nil},
	} {
		got, err := Clean(c.text)
		check.That(t, got == c.want && errors.Is(err, c.err) && (err == nil) == (c.err == nil),
			"%s: Clean(%q)\n got %q, %v\nwant %q, %v", c.name, c.text, got, err, c.want, c.err)
	}
}

func TestCleanSummaryProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, err := Clean(prompttest.Hostile().Draw(t, "text"))
		if err != nil {
			return
		}
		check.Need(t, lengthOf(text) >= minSummary && utf8.ValidString(text) && len(Leaks(text, "")) == 0, "%q was taken", text)
		again, err := Clean(text)
		check.Need(t, err == nil && again == text, "%q cleaned again gives %q, %v", text, again, err)
	})
}

func TestCleanTitle(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"A hedge for the shade":          "A hedge for the shade",
		"  \"A hedge.\"\n":               "A hedge",
		"Title: “A hedge”":               "A hedge",
		"## **A hedge**":                 "A hedge",
		"Title: `A hedge`":               "A hedge",
		"**Title:** A hedge":             "A hedge",
		"<title>":                        "<title>",
		"<think>hm\n</think>\nA hedge":   "A hedge",
		"```\nA hedge\n```":              "A hedge",
		"Notes on e.g. hedges.":          "Notes on e.g. hedges.",
		"“Walden” and “Emma” compared":   "“Walden” and “Emma” compared",
		"A\u200b\x1b hedge":              "A hedge",
		"":                               "",
		"\"\"":                           "",
		"<think>it never ends":           "",
		"A hedge\nA fence":               "",
		"I'm sorry, but I can't do that": "",
		strings.Repeat("hedge ", 20):     "",
		"a <coppice-title-0123> b":       "",
		"the nonce 0123456789abcdef":     "",
	} {
		got, err := CleanTitle(answer, "0123456789abcdef")
		check.That(t, got == want && (err == nil) == (want != ""), "%q: %q, %v; want %q", answer, got, err, want)
	}
}
