package prompt

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// dated gives messages by turns of the user and the assistant, six hours apart.
func dated(texts ...string) []tree.Message {
	at := time.Date(2026, 5, 4, 9, 30, 0, 0, time.UTC)
	var out []tree.Message
	for i, text := range texts {
		m := prompttest.UserSays(text)
		if i%2 == 1 {
			m = prompttest.AssistantSays(text)
		}
		m.CreatedAt = at.Add(time.Duration(i) * 6 * time.Hour)
		m.ID = uuid.NewSHA1(uuid.Nil, []byte(text))
		out = append(out, m)
	}
	return out
}

// These are prompts in four languages, and of an agent with a file, calls and kept messages.
func TestPromptsGolden(t *testing.T) {
	t.Parallel()
	first := func(fold []tree.Message) Input {
		return Input{Nonce: prompttest.Nonce, Fold: fold[:len(fold)-2], LookAhead: fold[len(fold)-2:], TargetTokens: 400}
	}
	german := first(dated(
		"Ich ziehe am 30. September aus der Werkstatt in der Feldgasse 9 aus. Merk dir das bitte.", "Notiert: Auszug am 30. September, Feldgasse 9.",
		"Die Umzugsfirma Brandner will 1.480 € netto. Keine Nachnahme, das lehne ich ab.", "Gut, Brandner ohne Nachnahme.",
		"Gestern hat der Vermieter doch den 28. gesagt.", "Dann gilt der 28. September.", "Wer holt die Presse?", "Das ist noch offen."))
	german.Stays = Stays{german.Fold[2].ID: true, german.Fold[4].ID: false}
	agent := Input{
		Nonce: prompttest.Nonce, TargetTokens: 400, PriorTokens: 12, Prior: "## Task\nMove the limits of the shop into a file.\n\n## " + FilledHeadings["en"] + "\n- user: The shop is in Kiel.",
		Kept: dated("Move the limits of the shop into a file, and never touch legacy/."), Leaving: dated("Use YAML."),
	}
	spec := (&chat.Message{Role: chat.User, Parts: []chat.Part{chat.TextPart("Read this first."), attached("spec.md")}}).Encode()
	agent.Files = Files{chat.Read(spec).Attachments()[0].Hash: "# Limits\nbudget: 4321"}
	agent.Fold = []tree.Message{
		{Role: tree.RoleUser, Body: spec},
		prompttest.Message(tree.RoleAssistant, map[string]any{"content": nil, "tool_calls": []any{
			map[string]any{"id": "a", "type": "function", "function": map[string]any{"name": "read", "arguments": `{"path":"shop/limits.go"}`}},
			map[string]any{"id": "b", "type": "function", "function": map[string]any{"name": "read", "arguments": `{"path":"shop/shop.go"}`}},
		}}),
		prompttest.ToolSays("b", "package shop"), prompttest.ToolSays("a", "const Limit = 4000"),
		prompttest.AssistantCalls("edit", fmt.Sprintf(`{"path":"shop/limits.go","old":%q,"new":%q}`, strings.Repeat("old ", 600), strings.Repeat("new ", 600))),
		prompttest.ToolSays("edit", "edited"),
	}
	agent.newest = newestCalls(agent.Fold)
	for name, in := range map[string]Input{
		"english": first(dated("I'm Ada. My sister Bea visits on Friday; she is allergic to nuts.", "Noted. Shall I plan the dinner?",
			"Yes, for four, under 60 EUR. No fish.", "Then a risotto.", "Yesterday I said four, make it five.", "Five, then.")),
		"german": german,
		"chinese": first(dated("我叫林晓，下周三搬到杭州，预算是三千五百元。", "好的，我记下了：下周三，预算3500元。",
			"不要合租，要离地铁近。", "明白，整租，近地铁。", "昨天看的那套太吵了。", "那就不考虑它。")),
		"french": first(dated("Je m'appelle Odile. Le devis de 2 310 € pour le toit est accepté.", "C'est noté.",
			"Les travaux commencent le 12 juin, pas le 5.", "Le 12 juin, donc.", "Et l'échafaudage ?", "Il reste à réserver.")),
		"agent": agent,
	} {
		check.Golden(t, "testdata/prompt-"+name+".golden", readable(buildPrompt(in, fullLimits)))
	}
}

// attached is a part that names a file.
func attached(name string) chat.Part {
	return chat.AttachmentPart(sha256.Sum256([]byte(name)), name, false)
}

// TestOwnWords counts what a first fold costs besides the conversation.
func TestOwnWords(t *testing.T) {
	t.Parallel()
	in := Input{Nonce: prompttest.Nonce, LookAhead: []tree.Message{prompttest.UserSays("x")}, TargetTokens: 4000}
	n := promptTokens(buildPrompt(in, fullLimits), tokens.O200k())
	check.That(t, n <= 1000, "a first fold has %d tokens of our own words, and 1000 are the most", n)
}

// TestCutArguments cuts each string of a call's arguments by itself.
func TestCutArguments(t *testing.T) {
	t.Parallel()
	got := cutArguments(fmt.Sprintf(`{"path": "a.go", "old": %q, "todos": [{"text": "first"}, {"text": "last"}], "new": %q}`, strings.Repeat("o", 900), strings.Repeat("n", 900)+" END"), 500)
	for _, want := range []string{`{"path":"a.go","old":"ooo`, `"todos":[{"text":"first"},{"text":"last"}]`, `END"}`} {
		check.That(t, strings.Contains(got, want), "%s lacks %s", got, want)
	}
	check.That(t, len(got) <= 700, "%d characters: %s", len(got), got)
}

// A summarizer reads as much of a file as there is room for, and all that the user says beside it.
func TestMoreOfAFileWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	body := (&chat.Message{Role: chat.User, Parts: []chat.Part{chat.TextPart("Read this."), attached("spec.md")}}).Encode()
	text := "BEGIN " + strings.Repeat("All about limits and budgets. ", 1500) + "END"
	in := Input{Nonce: prompttest.Nonce, TargetTokens: 300, Fold: []tree.Message{{Role: tree.RoleUser, Body: body}}, Files: Files{chat.Read(body).Attachments()[0].Hash: text}}
	for _, test := range []struct{ budget, least, most int }{{3_000, 2_000, 8_000}, {6_000, 8_000, 16_100}, {40_000, len(text), len(text) + 100}} {
		step, rest, err := Next(in, test.budget, prompttest.Quarters{})
		check.Need(t, err == nil && len(rest) == 0, "a budget of %d: %d messages are left, %v", test.budget, len(rest), err)
		var fold string
		for _, m := range step.prompt {
			if m.part == partFold {
				fold = m.text
			}
		}
		if n := len(fold); n < test.least || n > test.most+300 || step.Tokens > test.budget {
			t.Errorf("a budget of %d: %d bytes of the fold, want %d to %d", test.budget, n, test.least, test.most)
		}
		for _, want := range []string{"| Read this.", "file \"spec.md\":\n| BEGIN", "END"} {
			check.That(t, strings.Contains(fold, want), "a budget of %d: the fold lacks %q", test.budget, want)
		}
	}
}
