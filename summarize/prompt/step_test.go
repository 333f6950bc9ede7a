package prompt

import (
	"errors"
	"fmt"
	"github.com/coppice-chat/coppice/internal/check"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"

	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
)

// allSteps runs Next to the end with summaries of a length, and checks what holds of any run.
func allSteps(t interface {
	Helper()
	Fatalf(string, ...any)
}, in Input, budget, summary int, counter tokens.Counter) []Step {
	t.Helper()
	whole := in
	var steps []Step
	var folded []tree.Message
	for rest := in.Fold; ; {
		in.Fold = rest
		step, after, err := Next(in, budget, counter)
		if err != nil {
			t.Fatalf("step %d: %v", len(steps)+1, err)
		}
		if n := promptTokens(step.prompt, counter); n > step.Tokens || step.Tokens > budget {
			t.Fatalf("step %d of budget %d says %d tokens and has %d", len(steps)+1, budget, step.Tokens, n)
		}
		if len(rest) > 0 && len(step.input.Fold) == 0 {
			t.Fatalf("step %d folds nothing", len(steps)+1)
		}
		if len(after) > 0 && after[0].Role == tree.RoleTool {
			t.Fatalf("step %d ends between a call and its results", len(steps)+1)
		}
		if len(after) > 0 && len(step.input.LookAhead) > 0 {
			t.Fatalf("step %d has the look-ahead, and isn't the last", len(steps)+1)
		}
		steps, folded = append(steps, step), append(folded, step.input.Fold...)
		if rest = after; len(rest) == 0 {
			break
		}
		in.Prior = strings.Repeat("sum ", summary)
		in.PriorTokens = counter.Count(in.Prior)
	}
	if !slices.EqualFunc(folded, whole.Fold, func(a, b tree.Message) bool { return string(a.Body) == string(b.Body) }) {
		t.Fatalf("%d steps fold %d messages of %d", len(steps), len(folded), len(whole.Fold))
	}
	return steps
}

func TestNextStep(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	turn := func(i int) []tree.Message {
		return []tree.Message{
			prompttest.UserSays(fmt.Sprintf("Question %d. %s", i, strings.Repeat("Please explain in detail. ", 20))),
			prompttest.AssistantCalls("search", fmt.Sprintf(`{"q":%d}`, i)), prompttest.ToolSays("search", strings.Repeat("found it. ", 40)),
			prompttest.AssistantSays("Answer. " + strings.Repeat("It is so because of that. ", 20)),
		}
	}
	var long []tree.Message
	for i := range 60 {
		long = append(long, turn(i)...)
	}
	huge := []tree.Message{prompttest.UserSays(strings.Repeat("All the text of a book. ", 40_000)), prompttest.AssistantSays("I have read it.")}
	var parallel []map[string]any
	results := []tree.Message{{}}
	for i := range 40 {
		id := fmt.Sprint("call", i)
		parallel = append(parallel, map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "read", "arguments": `{"n":1}`}})
		results = append(results, prompttest.ToolSays(id, strings.Repeat("data ", 300)))
	}
	results[0] = prompttest.Message(tree.RoleAssistant, map[string]any{"content": nil, "tool_calls": parallel})
	for _, c := range []struct {
		name       string
		in         Input
		budget     int
		min, max   int // steps
		lookAhead  int // messages in the last step, -1 for any
		mustShrink bool
	}{
		{"fits", Input{Fold: long[:8], LookAhead: turn(99)}, 100_000, 1, 1, 4, false},
		{"far larger than the window", Input{Fold: long, LookAhead: turn(99)}, 4_000, 6, 30, 4, false},
		{"look-ahead larger than the window", Input{Fold: long[:8], LookAhead: long}, 4_000, 1, 3, -1, false},
		{"one giant message", Input{Fold: huge}, 4_000, 1, 2, 0, true},
		{"a giant message in the middle", Input{Fold: slices.Concat(long[:8], huge, long[:8])}, 4_000, 3, 6, 0, false},
		{"a few words before a giant message", Input{Fold: slices.Concat([]tree.Message{prompttest.UserSays("Read this.")}, huge, long[:8])}, 4_000, 1, 3, 0, true},
		{"many calls at once", Input{Fold: results}, 4_000, 1, 1, 0, true},
		{"a prior summary larger than the window", Input{Prior: strings.Repeat("It was said that. ", 5_000), PriorTokens: 20_000, Fold: long[:8]}, 6_000, 1, 3, 0, false},
		{"instructions larger than the window", Input{Instructions: strings.Repeat("Mind the gap. ", 5_000), Fold: long[:8]}, 4_000, 1, 3, 0, false},
		{"nothing to fold", Input{Prior: "x"}, 4_000, 1, 1, 0, false},
	} {
		c.in.Nonce, c.in.TargetTokens = prompttest.Nonce, 500
		steps := allSteps(t, c.in, c.budget, 500, counter)
		last := steps[len(steps)-1]
		check.That(t, len(steps) >= c.min && len(steps) <= c.max, "%s: %d steps, want %d to %d", c.name, len(steps), c.min, c.max)
		if n := len(last.input.LookAhead); c.lookAhead >= 0 && n != c.lookAhead {
			t.Errorf("%s: %d messages of look-ahead in the last step, want %d", c.name, n, c.lookAhead)
		}
		shrunk := steps[0].limits != fullLimits
		check.That(t, shrunk == c.mustShrink, "%s: first step's limits %+v", c.name, steps[0].limits)
	}
	// The newest of the look-ahead stay.
	steps := allSteps(t, Input{Nonce: prompttest.Nonce, TargetTokens: 500, Fold: long[:8], LookAhead: long[8:]}, 4_000, 500, counter)
	got := steps[len(steps)-1].input.LookAhead
	check.That(t, len(got) != 0 && string(got[len(got)-1].Body) == string(long[len(long)-1].Body),
		"%d messages of the look-ahead stay", len(got))
	if _, _, err := Next(Input{Nonce: prompttest.Nonce, Fold: long}, 300, counter); !errors.Is(err, errWindow) {
		t.Errorf("a window of 300 tokens: %v", err)
	}
}

func TestNextStepProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		message := rapid.Custom(func(t *rapid.T) []tree.Message {
			text := strings.Repeat(prompttest.Hostile().Draw(t, "text")+"x ", rapid.IntRange(1, 60).Draw(t, "times"))
			if rapid.Bool().Draw(t, "call") {
				return []tree.Message{prompttest.AssistantCalls("f", text), prompttest.ToolSays("f", text)}
			}
			return []tree.Message{prompttest.UserSays(text)}
		})
		in := Input{
			Nonce: prompttest.Nonce, TargetTokens: 100, Prior: prompttest.Hostile().Draw(t, "prior"), Instructions: prompttest.Hostile().Draw(t, "instructions"),
			Fold:      slices.Concat(rapid.SliceOfN(message, 1, 12).Draw(t, "fold")...),
			LookAhead: slices.Concat(rapid.SliceOfN(message, 0, 4).Draw(t, "ahead")...),
		}
		in.PriorTokens = prompttest.Quarters{}.Count(in.Prior)
		budget := rapid.IntRange(3_000, 8_000).Draw(t, "budget")
		allSteps(t, in, budget, rapid.IntRange(0, 3_000).Draw(t, "summary"), prompttest.Quarters{})
	})
}
