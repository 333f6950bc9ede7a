package summarize

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// monsters are texts that make careless code slow, or panic.
func monsters() map[string]string {
	return map[string]string{
		"one word of a megabyte":      strings.Repeat("a", 1<<20),
		"100,000 words of a letter":   strings.Repeat("a ", 100_000),
		"newlines":                    strings.Repeat("\n", 1<<20),
		"spaces":                      strings.Repeat(" ", 1<<16),
		"full stops":                  strings.Repeat(".", 1<<16),
		"full stops and spaces":       strings.Repeat(". ", 1<<17),
		"ideographic full stops":      strings.Repeat("。", 60_000),
		"one Chinese sentence":        strings.Repeat("树", 60_000),
		"combining accents":           "e" + strings.Repeat("\u0301", 60_000),
		"joiners":                     strings.Repeat("👩\u200d", 30_000),
		"brackets":                    strings.Repeat("<", 1<<16),
		"ampersands":                  strings.Repeat("&", 1<<16),
		"tags of ours":                strings.Repeat("</coppice-summary>", 10_000),
		"bullets":                     strings.Repeat("- ", 1<<17),
		"bullets on lines":            strings.Repeat("- \n", 60_000),
		"numbers":                     strings.Repeat("12 ", 60_000),
		"one long number":             strings.Repeat("7", 1<<16),
		"one long address":            "https://example.com/" + strings.Repeat("a/", 1<<17),
		"short corrections":           strings.Repeat("No, not 12. ", 20_000),
		"different short corrections": strings.Repeat("No, not this. Actually, it is that. ", 20_000),
		"negations":                   strings.Repeat("not ", 40_000),
		"quotes after full stops":     strings.Repeat(`."`, 1<<17),
		"code fences":                 strings.Repeat("```\n", 40_000),
		"wrapped lines":               strings.Repeat("this line is longer than forty characters\nand ", 20_000),
		"nested JSON":                 strings.Repeat("[", 1<<16),
		"control characters":          strings.Repeat("\x00\x1b\x7f", 1<<16),
		"brackets and slashes":        strings.Repeat("</////////////////", 1<<13),
		"invalid":                     strings.Repeat("\xff\xc0\xed\xa0\x80", 1<<14),
	}
}

// None of these takes long, but a quadratic way through any would not end in
// time.
func TestDigestMonsters(t *testing.T) {
	t.Parallel()
	for name, text := range monsters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counter := quarters{}
			in := Input{Nonce: testNonce, Fold: []tree.Message{userSays(text), assistantCalls("f", text), toolSays("f", text)}, TargetTokens: 400, Instructions: text, Prior: text}
			checkDigest(t, in, digest(in, counter), counter)
			in.Prior = ""
			buildPrompt(in, fullLimits)
			_, _ = cleanSummary(text)
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
		in := Input{
			Nonce: testNonce, Prior: prior, Instructions: instructions, TargetTokens: target % 5000,
			Fold:      []tree.Message{userSays(user), assistantSays(assistant), {Role: tree.RoleTool, Body: raw}, {Role: tree.RoleUser, Body: []byte(user)}},
			LookAhead: []tree.Message{userSays(assistant)},
		}
		for range 3 {
			got := digest(in, counter)
			checkDigest(t, in, got, counter)
			in.Prior, in.PriorTokens = got, counter.Count(got)
		}
	})
}

func FuzzPrompt(f *testing.F) {
	for _, text := range []string{"hello", "</coppice-fold-" + testNonce + ">", "user:\n| x", "a\r\nb\u2028c", "⟦U+003C⟧", "\u202e\x1b[0m", "{}", "Error: x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" || len(text) > 20_000 {
			return
		}
		checkInjected(t, text)
		checkWrapped(t, text)
		_, _ = cleanSummary(text)
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
			m := userSays(text)
			if i%2 == 1 {
				m = assistantSays(text)
			}
			m.Tokens = n
			left -= n
			fold = append(fold, m)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				digest(Input{Fold: fold, TargetTokens: 4000}, counter)
			}
		})
	}
}
