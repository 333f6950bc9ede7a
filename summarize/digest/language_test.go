package digest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// table reads a file of texts, with bars between those of a line.
func table(t testing.TB, file string) (rows [][]string) {
	t.Helper()
	for line := range strings.Lines(string(check.Must(os.ReadFile("testdata/" + file))(t))) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), " | "))
	}
	return rows
}

// Of a chat in each language stay the decision, preference or correction, and a fact with something
// exact in it, beside small talk.
func TestDigestLanguages(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	for _, l := range table(t, "languages.txt") {
		name, decision, fact, talk := l[0], l[1], l[2], l[3]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fold := []tree.Message{prompttest.UserSays("…"), prompttest.AssistantCalls("f", "{}")} // the goal is another message, and an assistant answers
			for i := range 30 {
				fold = append(fold, prompttest.AssistantSays(talk+fmt.Sprint(strings.Repeat("!", i))), prompttest.UserSays(talk+strings.Repeat("…", i)))
			}
			fold[8] = prompttest.UserSays(talk + " " + decision + " " + talk)
			fold[20] = prompttest.UserSays(fact + " " + talk)
			in := prompt.Input{Fold: fold, TargetTokens: 260}
			for round := range 2 {
				got := extract(in, counter)
				checkDigest(t, in, got, counter)
				lines := digestLines(got)
				decisions := strings.Join(lines["Decisions and preferences"], "\n")
				check.That(t, strings.Contains(decisions, decision), "round %d: the decision is not in\n%s", round, decisions)
				check.That(t, strings.Contains(got, fact), "round %d: the fact is not in\n%s", round, got)
				in = prompt.Input{Prior: got, PriorTokens: counter.Count(got), TargetTokens: 260, Fold: fold[:6]}
			}
		})
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil}, {"\n\n \n", nil}, {"One.", []string{"One."}},
		{"This is one thing. This is another! Is it? Yes, it is…", []string{"This is one thing.", "This is another!", "Is it? Yes, it is…"}},
		{"No. The port is 5433. And that is all.", []string{"No. The port is 5433.", "And that is all."}},
		{"See Dr. Okafor at 3.14 Main St. today, e.g. at noon.", []string{"See Dr. Okafor at 3.14 Main St. today, e.g. at noon."}},
		{"Open https://example.com/a.b?c=d. Then read main.go. Done now.", []string{"Open https://example.com/a.b?c=d.", "Then read main.go. Done now."}},
		{"He said “Stop it right now.” Then he left.", []string{"He said “Stop it right now.”", "Then he left."}},
		{"不对。端口是5433。今天天气很好！你呢？", []string{"不对。端口是5433。", "今天天气很好！你呢？"}},
		{"هذا سؤال أول هنا؟ وهذا جواب طويل.", []string{"هذا سؤال أول هنا؟", "وهذا جواب طويل."}},
		{"यह पहला वाक्य है। यह दूसरा वाक्य है।", []string{"यह पहला वाक्य है।", "यह दूसरा वाक्य है।"}},
		{"# Title\n\n- first point\n* second point\n1. third point\n> quoted\n---\n#42 is open\n2024 was good", []string{"Title", "first point", "second point", "third point", "quoted", "#42 is open", "2024 was good"}},
		{"This line was wrapped by an editor at some column\nand goes on here.\nA new one.", []string{"This line was wrapped by an editor at some column\nand goes on here.", "A new one."}},
		{"before the code\r\n```go\r\nx := 1\r\n```\r\nafter the code", []string{"before the code", "code: x := 1", "after the code"}},
	} {
		var got []string
		for s := range sentences(c.text) {
			if s.code {
				s.text = "code: " + s.text
			}
			got = append(got, s.text)
		}
		check.That(t, slices.Equal(got, c.want), "sentences(%q)\n got %q\nwant %q", c.text, got, c.want)
	}
	thai := strings.Repeat("วันนี้อากาศดีมากเลยนะครับ", 100)
	for s := range sentences(thai) {
		check.That(t, len(s.text) <= maxSentence+utf8.UTFMax && utf8.ValidString(s.text),
			"a sentence of %d bytes: %q", len(s.text), s.text)
	}
}

// What the user forbids has room before sentences that say more by the token,
// in the first digest and in those that merge it. "Never mind" forbids nothing.
func TestDigestRules(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	for _, l := range table(t, "rules.txt") {
		name, rule, none := l[0], l[1], l[2]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rich := func(n int) tree.Message {
				return prompttest.AssistantSays(fmt.Sprintf("Zb%crak-%d costs %d EUR in Kal%cton, %s.", 'a'+n%26, 100+n, 1000+7*n, 'a'+n%26, []string{"Wendom", "Oslavia", "Tarnhult"}[n%3]))
			}
			fold := []tree.Message{prompttest.UserSays("…"), prompttest.AssistantCalls("f", "{}")}
			for n := range 30 {
				fold = append(fold, rich(n), prompttest.UserSays(fmt.Sprintf("Quarry-%d delivers on %d May from Hollin%c Road, gate G-%d.", n, 1+n%28, 'a'+n%26, 31*n)))
			}
			fold[12] = prompttest.UserSays(rule)
			fold[24] = prompttest.UserSays(none)
			in := prompt.Input{Fold: fold, TargetTokens: 200}
			for round := range 2 {
				got := extract(in, counter)
				checkDigest(t, in, got, counter)
				decisions := strings.Join(digestLines(got)["Decisions and preferences"], "\n")
				check.That(t, strings.Contains(decisions, rule), "round %d: the rule is not in\n%s", round, got)
				check.That(t, !strings.Contains(decisions, none), "round %d: %q holds no rule:\n%s", round, none, got)
				in = prompt.Input{Prior: got, PriorTokens: counter.Count(got), TargetTokens: 200, Fold: fold[40:52]}
			}
		})
	}
}

// Rules have a share of the room, and no more: facts have the rest.
func TestDigestRulesHaveAShare(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	fold := []tree.Message{prompttest.AssistantCalls("f", "{}")}
	for n := range 40 {
		fold = append(fold, prompttest.UserSays(fmt.Sprintf("Never lend the Zb%crak number %d to a neighbour.", 'a'+n%26, n)),
			prompttest.AssistantSays(fmt.Sprintf("Order K-%d of %d crates lies in hall H-%d.", n, 1000+7*n, 31*n)))
	}
	lines := digestLines(extract(prompt.Input{Fold: fold, TargetTokens: 500}, counter))
	if bans, facts := len(lines["Decisions and preferences"]), len(lines["Facts"]); bans < 5 || facts < 3 {
		t.Errorf("%d rules and %d facts", bans, facts)
	}
}
