package digest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// chatOf reads messages that begin with "user: ", "assistant: ", "calls: " and
// "tool: ". A call has a tool's name and its arguments.
func chatOf(text string) (messages []tree.Message) {
	var at []int // where messages begin
	for i := range len(text) {
		if i > 0 && text[i-1] != '\n' {
			continue
		}
		for _, label := range []string{"user: ", "assistant: ", "calls: ", "tool: "} {
			if strings.HasPrefix(text[i:], label) {
				at = append(at, i)
			}
		}
	}
	tool := ""
	for n, i := range at {
		end := len(text)
		if n+1 < len(at) {
			end = at[n+1]
		}
		label, said, _ := strings.Cut(strings.TrimSpace(text[i:end]), ": ")
		switch label {
		case "user":
			messages = append(messages, prompttest.UserSays(said))
		case "assistant":
			messages = append(messages, prompttest.AssistantSays(said))
		case "calls":
			var arguments string
			tool, arguments, _ = strings.Cut(said, " ")
			messages = append(messages, prompttest.AssistantCalls(tool, arguments))
		case "tool":
			messages = append(messages, prompttest.ToolSays(tool, said))
		}
	}
	return messages
}

// Digests of chats in eight languages, to be read. docs/summaries.md shows some.
func TestDigestChats(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/chats/*.txt")
	if err != nil || len(files) != 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text := check.Must(os.ReadFile(file))(t)
		got := digestOf(t, chatOf(strings.TrimSpace(string(text))), 2)
		check.Golden(t, "testdata/chats/"+strings.TrimSuffix(filepath.Base(file), ".txt")+".golden", got+"\n")
	}
}

// digestOf is the digest of messages at a share of their length.
func digestOf(t *testing.T, fold []tree.Message, share int) string {
	t.Helper()
	counter := tokens.O200k()
	in := prompt.Input{Fold: fold}
	sum := 0
	for i := range in.Fold {
		m := &in.Fold[i]
		said := prompt.Read(*m)
		m.Tokens = counter.Count(said.Text)
		for _, call := range said.Calls {
			m.Tokens += counter.Count(call.Name + call.Arguments)
		}
		sum += m.Tokens
	}
	in.TargetTokens = sum / share
	got := extract(in, counter)
	checkDigest(t, in, got, counter)
	return got
}
