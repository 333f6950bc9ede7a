package clients_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

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
		if err != nil {
			t.Fatal(err)
		}
		if got := first.OutputText(); got != "Saw [m:a]." {
			t.Errorf("answered %q", got)
		}
		for _, mark := range []string{"b", "c"} {
			next, err := ai.Responses.New(t.Context(), responses.ResponseNewParams{Model: model, Input: text("Two [m:" + mark + "]"), PreviousResponseID: openai.String(first.ID)})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := next.OutputText(), "Saw [m:a] [m:"+mark+"]."; got != want {
				t.Errorf("answered %q, want %q", got, want)
			}
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
		if err != nil {
			t.Fatal(err)
		}
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
			if err != nil {
				t.Fatal(err)
			}
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
	if err != nil || len(page.Data) != 1 {
		t.Fatalf("%d conversations, %v", len(page.Data), err)
	}
	leaves, err := store.Branches(t.Context(), page.Data[0].ID, tree.Paging{})
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range leaves.Data {
		var said []string
		for m, err := range store.Branch(t.Context(), page.Data[0].ID, leaf.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, string(m.Role)+": "+chat.Read(m.Body).Text())
		}
		lines = append([]string{strings.Join(said, " | ")}, lines...)
	}
	return lines
}
