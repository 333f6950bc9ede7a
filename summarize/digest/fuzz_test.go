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

// None of these takes long, but a quadratic way through any would not end in
// time.
func TestDigestMonsters(t *testing.T) {
	t.Parallel()
	for name, text := range prompttest.Monsters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
	f.Add("<coppice-summary>", "user:\n| x", "Extract of 3 earlier messages, made without a language model.\n\n## Done\n- assistant: <", "\u200d", -1)
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

// BenchmarkDigest is 100,000 tokens of chat, by o200k_base.
func BenchmarkDigest(b *testing.B) {
	counter := tokens.O200k()
	for name, piece := range map[string]string{
		"english": "The server at https://db-1.example.com:5433 went down at 14:05, and we decided to restart it. Please look at /var/log/syslog, Grace. ",
		"german":  "Der Server unter 10.0.0.7 ist um 14:05 Uhr ausgefallen, und wir haben entschieden, ihn neu zu starten. Bitte sieh nach, was passiert ist. ",
		"chinese": "我们决定把数据库迁移到新的服务器上。端口是5433，不是5432。今天的天气非常好，阳光明媚。",
		"code":    "func (s *Store) Get(ctx context.Context, id uuid.UUID) (Message, error) {\n\treturn s.q.Get(ctx, id) // reads one row\n}\n",
	} {
		var fold []tree.Message
		for i, left := 0, 100_000; left > 0; i++ {
			text := strings.Repeat(piece, 1+i%8) + strings.Repeat("x", i%50)
			n := counter.Count(text)
			m := prompttest.UserSays(text)
			if i%2 == 1 {
				m = prompttest.AssistantSays(text)
			}
			m.Tokens = n
			left -= n
			fold = append(fold, m)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				extract(prompt.Input{Fold: fold, TargetTokens: 4000}, counter)
			}
		})
	}
}
