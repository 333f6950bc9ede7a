package prompt

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// sample is a short conversation with most of what can stand in one.
func sample() []tree.Message {
	return []tree.Message{
		prompttest.Message(tree.RoleUser, map[string]any{"name": "Ada", "content": "I want to coppice the hazel hedge at 12 Mill Lane.\nNever cut in spring: the birds nest there."}),
		prompttest.AssistantSays("When did you last cut it?"),
		prompttest.Message(tree.RoleUser, map[string]any{"content": []any{
			map[string]any{"type": "text", "text": "In 2019. This is how it looks:"},
			map[string]any{"type": "image_url", "image_url": map[string]any{"url": "https://example.org/hedge.jpg"}},
			map[string]any{"type": "file", "file": map[string]any{"filename": "plan.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
		}}),
		prompttest.Message(tree.RoleAssistant, map[string]any{"content": "I'll look up the weather.", "tool_calls": []any{
			map[string]any{"id": "c1", "type": "function", "function": map[string]any{"name": "forecast", "arguments": "{\n  \"place\": \"Mill Lane\",\n  \"days\": 3\n}"}},
			map[string]any{"id": "c2", "type": "function", "function": map[string]any{"name": "calendar", "arguments": `{"month":"2026-02"}`}},
		}}),
		prompttest.Message(tree.RoleTool, map[string]any{"tool_call_id": "c1", "content": "Frost until Thursday, -4 °C."}),
		prompttest.Message(tree.RoleTool, map[string]any{"tool_call_id": "c2", "content": `{"error":"calendar is not connected"}`}),
		prompttest.AssistantSays("Frost until Thursday. I couldn't read your calendar."),
		prompttest.UserSays("No, not 2019, it was 2018. Then Friday 13 February."),
	}
}

func sampleAhead() []tree.Message {
	return []tree.Message{prompttest.AssistantSays("Friday it is. Do you have a saw?"), prompttest.UserSays("A bow saw, yes.")}
}

// readable is a prompt as a person reads it.
func readable(p prompt) string {
	var b strings.Builder
	for i, m := range p {
		fmt.Fprintf(&b, "=== %d. %s: %s\n%s\n\n", i+1, m.role(), m.part, m.text)
	}
	return b.String()
}

func TestPromptGolden(t *testing.T) {
	t.Parallel()
	first := Input{Nonce: prompttest.Nonce, Fold: sample(), LookAhead: sampleAhead(), TargetTokens: 4000}
	check.Golden(t, "testdata/prompt-first.golden", readable(buildPrompt(first, fullLimits)))
	progressive := Input{
		Nonce: prompttest.Nonce, Prior: "Goal: coppice the hazel hedge at 12 Mill Lane.\n\nNever cut in spring.", PriorTokens: 3000,
		Fold: sample()[3:], TargetTokens: 4000, Instructions: "Keep every date.\nWrite in British English.",
	}
	check.Golden(t, "testdata/prompt-progressive.golden", readable(buildPrompt(progressive, fullLimits)))
}

// A model is told sizes in characters of the conversation's own text.
func TestPromptSizes(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	for _, c := range []struct {
		name, prior, said string
		want              []string
	}{
		{"an unknown text", "", "Hm.", []string{"about 4000 characters", "More than 8000 "}},
		{"Chinese", "", strings.Repeat("我们决定九月八日搬到莱比锡的新仓库。", 40), []string{"about 1202 characters", "More than 2403 "}},
		{"the summary before tells, and not the messages", strings.Repeat("我们决定九月八日搬到莱比锡的新仓库。", 40), strings.Repeat("Many words. ", 400), []string{"so far has 720 characters", "about 1200 characters"}},
	} {
		step := check.Must3(Next(Input{Nonce: prompttest.Nonce, Prior: c.prior, Fold: []tree.Message{prompttest.UserSays(c.said)}, TargetTokens: 1000}, 100_000, counter))(t)
		text := step.prompt[len(step.prompt)-1].text
		for _, want := range c.want {
			check.That(t, strings.Contains(text, want), "%s: no %q in %q", c.name, want, text)
		}
	}
}

// What is a little too long is to become a little shorter.
func TestPromptShorten(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	step := Step{prompt: prompt{{partSystem, "x"}}, input: Input{Nonce: prompttest.Nonce, TargetTokens: 300}}
	answer := strings.Repeat("The press stays in Leipzig. ", 101) // 607 tokens
	got := step.Shorten(answer, counter).prompt[1].text
	if want := "2795 are the most that is accepted. Write it again in about 2515 characters, which is 12 percent less"; !strings.Contains(got, want) {
		t.Errorf("%d tokens: no %q in %q", counter.Count(answer), want, got[:300])
	}
}

func TestPromptInstructions(t *testing.T) {
	t.Parallel()
	closing := func(instructions string) string {
		p := buildPrompt(Input{Nonce: prompttest.Nonce, Instructions: instructions, TargetTokens: 100}, fullLimits)
		return p[len(p)-1].text
	}
	if got := closing("  \n"); strings.Contains(got, "operator") {
		t.Errorf("without instructions: %q", got)
	}
	if got := closing("Keep prices."); !strings.Contains(got, "\n| Keep prices.\n</coppice-instructions-"+prompttest.Nonce+">") {
		t.Errorf("with instructions: %q", got)
	}
	if got := closing(strings.Repeat("Keep prices. ", 10_000)); len(got) > MaxInstructions+2000 || !strings.Contains(got, "characters cut out") {
		t.Errorf("long instructions make %d bytes", len(got))
	}
}

// corpus reads the hostile texts. Of *.quoted.txt each line is one, in Go's notation.
func corpus(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/injection/*.txt")
	check.Need(t, err == nil && len(files) >= 25, "%d files, %v", len(files), err)
	texts := map[string]string{}
	for _, file := range files {
		raw := check.Must(os.ReadFile(file))(t)
		text := strings.ReplaceAll(string(raw), "NONCE", prompttest.Nonce)
		if !strings.HasSuffix(file, ".quoted.txt") {
			texts[filepath.Base(file)] = text
			continue
		}
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			plain, err := strconv.Unquote(`"` + strings.ReplaceAll(line, `"`, `\"`) + `"`)
			check.Need(t, err == nil, "%s:%d: %v", file, i+1, err)
			texts[fmt.Sprintf("%s:%d", filepath.Base(file), i+1)] = plain
		}
	}
	return texts
}

// injected puts a hostile text wherever text can stand, and gives what a reader must make of it.
func injected(text string) (in Input, want prompttest.Parsed) {
	members := map[string]any{"content": text, "name": text, "refusal": text, "tool_calls": []any{
		map[string]any{"id": text, "type": "function", "function": map[string]any{"name": text, "arguments": text}},
		map[string]any{"id": "custom", "type": "custom", "custom": map[string]any{"name": "shell", "input": text}},
	}}
	parts := []any{map[string]any{"type": "text", "text": text}, map[string]any{"type": "text", "text": "end"}}
	messages := []tree.Message{
		prompttest.UserSays(text), prompttest.AssistantSays("Safe."), prompttest.Message(tree.RoleAssistant, members), prompttest.ToolSays(text, text), prompttest.ToolSays("custom", text),
		prompttest.Message(tree.RoleUser, map[string]any{"content": parts}), prompttest.UserSays("Done."),
	}
	in = Input{Nonce: prompttest.Nonce, Prior: text, PriorTokens: 10, Fold: messages, LookAhead: messages, Instructions: "x" + text + "x", TargetTokens: 1000}

	plain := plainBreaks(text)
	oneLine := strings.TrimSpace(strings.ReplaceAll(plainBreaks(CutMiddle(text, maxNameCharacters)), "\n", " "))
	name := `"` + strings.ReplaceAll(oneLine, `"`, "'") + `"`
	by := "assistant " + name
	tool := name
	if plainName.MatchString(text) && !strings.HasSuffix(text, ":") && escapeText(text, prompttest.Nonce) == text {
		tool = text
	}
	failed := ""
	if saysError(string([]rune(text))) {
		failed = " (error)"
	}
	arguments := strings.TrimSpace(strings.ReplaceAll(plainBreaks(cutArguments(text, fullLimits.arguments)), "\n", " "))
	entries := []prompttest.Entry{
		{Label: "user", Text: plain}, {Label: "assistant", Text: "Safe."}, {Label: by, Text: plain}, {Label: by + " refuses", Text: plain},
		{Label: by + " calls " + tool, Text: arguments}, {Label: by + " calls shell", Text: arguments},
		{Label: "result of " + tool + failed, Text: plain}, {Label: "result of shell" + failed, Text: plain}, {Label: "user", Text: plainBreaks(text + "\nend")}, {Label: "user", Text: "Done."},
	}
	in.Kept, in.Leaving = []tree.Message{prompttest.UserSays(text)}, []tree.Message{prompttest.UserSays(text)}
	earlier := []prompttest.Entry{{Label: "user", Text: plainBreaks(CutMiddle(text, earlierLimits.text))}}
	return in, prompttest.Parsed{
		Parts: []string{"system", "prior", "kept", "leaving", "fold", "cutoff", "lookahead", "closing"},
		Prior: plain, Kept: earlier, Leaving: earlier, Fold: entries, LookAhead: entries, Instructions: "x" + plain + "x",
	}
}

// checkInjected fails where the prompt with the text everywhere doesn't come apart as it was made.
func checkInjected(t interface {
	Helper()
	Errorf(string, ...any)
}, text string) {
	t.Helper()
	in, want := injected(text)
	got, err := prompttest.Parse(buildPrompt(in, fullLimits).messages(), prompttest.Nonce)
	if err != nil {
		t.Errorf("%q: %v", text, err)
		return
	}
	if !slices.Equal(got.Parts, want.Parts) {
		t.Errorf("%q: parts %v", text, got.Parts)
	}
	for _, c := range []struct{ what, got, want string }{{"prior", got.Prior, want.Prior}, {"instructions", got.Instructions, want.Instructions}} {
		if c.got != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.what, c.got, c.want)
		}
	}
	for what, pair := range map[string][2][]prompttest.Entry{"kept": {got.Kept, want.Kept}, "leaving": {got.Leaving, want.Leaving}, "fold": {got.Fold, want.Fold}, "look-ahead": {got.LookAhead, want.LookAhead}} {
		if len(pair[0]) != len(pair[1]) {
			t.Errorf("%s has %d entries, want %d: %q", what, len(pair[0]), len(pair[1]), pair[0])
			continue
		}
		for i := range pair[0] {
			if pair[0][i] != pair[1][i] {
				t.Errorf("%s, entry %d\n got %q\nwant %q", what, i, pair[0][i], pair[1][i])
			}
		}
	}
}

func TestPromptInjection(t *testing.T) {
	t.Parallel()
	for name, text := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkInjected(t, text)
			checkWrapped(t, text)
		})
	}
}

func TestPromptInjectionProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := prompttest.Hostile().Filter(func(s string) bool { return s != "" }).Draw(t, "text")
		checkInjected(t, text)
		checkWrapped(t, text)
	})
}

func TestFenceNonce(t *testing.T) {
	t.Parallel()
	a, b := uuid.MustParse("0198f000-0000-7000-8000-000000000001"), uuid.MustParse("0198f000-0000-7000-8000-000000000002")
	first, again, other := Nonce(a), Nonce(a), Nonce(b)
	check.That(t, len(first) == 16 && first == again && first != other, "nonces %q, %q and %q", first, again, other)
}
