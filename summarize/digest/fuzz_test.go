package digest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// None of these takes long. A quadratic way through any of them would.
func TestDigestMonsters(t *testing.T) {
	t.Parallel()
	for name, text := range prompttest.Monsters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.ToValidUTF8(text[:min(len(text), 1<<17)], "\uFFFD")
			counter := prompttest.Quarters{}
			in := prompt.Input{Nonce: prompttest.Nonce, Fold: []tree.Message{prompttest.UserSays(text), prompttest.AssistantCalls("f", text), prompttest.ToolSays("f", text)}, TargetTokens: 400, Instructions: text, Prior: text}
			checkDigest(t, in, extract(in, counter), counter)
			in.Prior = ""
			if _, _, err := prompt.Next(in, 1<<30, counter); err != nil {
				t.Error(err)
			}
			_, _ = prompt.Clean(text)
		})
	}
}

func FuzzDigest(f *testing.F) {
	for _, l := range languages {
		f.Add(l.decision, l.fact+" "+l.talk, "## Facts\n- user: "+l.fact, l.talk, 100)
	}
	f.Add("<coppice-summary>", "user:\n| x", "Extract of 3 earlier messages, made without a language model.\n\n## Facts\n- assistant: <", "\u200d", -1)
	counter := tokens.O200k()
	f.Fuzz(func(t *testing.T, user, assistant, prior, instructions string, target int) {
		if len(user)+len(assistant)+len(prior)+len(instructions) > 20_000 {
			return
		}
		raw, _ := json.Marshal(user)
		in := prompt.Input{
			Nonce: prompttest.Nonce, Prior: prior, Instructions: instructions, TargetTokens: target % 5000,
			Fold:      []tree.Message{prompttest.UserSays(user), prompttest.AssistantSays(assistant), {Role: tree.RoleTool, Body: raw}, {Role: tree.RoleUser, Body: []byte(user)}},
			LookAhead: []tree.Message{prompttest.UserSays(assistant)},
		}
		for range 3 {
			got := extract(in, counter)
			checkDigest(t, in, got, counter)
			in.Prior, in.PriorTokens = got, counter.Count(got)
		}
	})
}
