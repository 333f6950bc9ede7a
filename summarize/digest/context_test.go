package digest

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// What says nothing alone stands with what it belongs to, or not at all.
func TestDigestContext(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	in := prompt.Input{TargetTokens: 700, Fold: []tree.Message{
		prompttest.UserSays("Hello there!"),
		prompttest.AssistantSays("On which day shall the boiler be delivered?"),
		prompttest.UserSays("On Friday."),
		prompttest.AssistantSays("## 14 March\n- The carpenter measures the kitchen windows.\n\n## Notes\n- The plumber brings two spare valves along.\n\nHere is the list:"),
		prompttest.AssistantCalls("list_parts", `{"room":"cellar"}`), prompttest.ToolSays("list_parts", "3 radiators, 11 brackets"),
	}}
	for i := range in.Fold {
		in.Fold[i].Tokens = 200
	}
	got := extract(in, counter)
	checkDigest(t, in, got, counter)
	for _, want := range []string{
		"user: [On which day shall the boiler be delivered?] On Friday.",
		"The carpenter measures the kitchen windows.", "The plumber brings two spare valves along.",
		`tool: [called list_parts {"room":"cellar"}] 3 radiators, 11 brackets`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is lost:\n%s", want, got)
		}
	}
	if strings.Contains(got, "Hello there") {
		t.Errorf("a greeting says nothing:\n%s", got)
	}
	again := extract(prompt.Input{Prior: got, PriorTokens: counter.Count(got), TargetTokens: 900, Fold: []tree.Message{prompttest.UserSays("Fine, go on.")}}, counter)
	for line := range strings.SplitSeq(got, "\n") {
		if strings.HasPrefix(line, "- ") && !strings.Contains(again, line) {
			t.Errorf("the next digest loses %q:\n%s", line, again)
		}
	}
}

// The lines of one speaker follow each other without the label, and are the
// speaker's in the next digest.
func TestDigestSpeakers(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	said := func(name, text string) tree.Message {
		return prompttest.Message(tree.RoleUser, map[string]any{"name": name, "content": text})
	}
	in := prompt.Input{TargetTokens: 400, Fold: []tree.Message{
		said("Bo", "Let us write down the plans for the summer."), said("Ada", "The ferry to Bodø leaves at 7:40."), said("Ada", "The cabin has the number 214."), said("Bo", "The car is parked on deck 3."),
	}}
	for i := range in.Fold {
		in.Fold[i].Tokens = 200
	}
	got := extract(in, counter)
	const want = "- user Ada: The ferry to Bodø leaves at 7:40.\n  The cabin has the number 214.\n- user Bo: The car is parked on deck 3."
	if !strings.Contains(got, want) {
		t.Errorf("%q is not in\n%s", want, got)
	}
	again := extract(prompt.Input{Prior: got, PriorTokens: counter.Count(got), TargetTokens: 400, Fold: []tree.Message{said("Bo", "The dog sleeps in the cabin, beside the blue suitcase.")}}, counter)
	if !strings.Contains(again, want+"\n  The dog sleeps") {
		t.Errorf("the next digest is\n%s", again)
	}
}
