package reply

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// titled makes a service whose contexts look for titles.
func titled(t *testing.T, titles summarize.Titles, writers ...llm.Model) *fixture {
	t.Helper()
	return serve(t, func(cfg *Config) {
		var models []summarize.Model
		for _, w := range writers {
			models = append(models, summarize.Model{Model: w, Window: 32_000})
		}
		cfg.Contexts = check.Must(summarize.New(cfg.Store, summarize.Config{Titles: titles, Summarizer: summarize.Cascade{Models: models}}))(t)
	}, &llmtest.Model{ModelName: "answers"})
}

// naming is a model that writes titles.
func naming(name, title string) *llmtest.Model {
	return &llmtest.Model{ModelName: name, Answer: func(context.Context, llm.Request) (llm.Response, error) {
		r := llmtest.Response(title)
		r.PromptTokens, r.CompletionTokens = 100, 7
		return r, nil
	}}
}

// after asks in a conversation, waits for the answer and the search for a title,
// and gives the conversation as it is then.
func (f *fixture) after(t *testing.T, req Request) tree.Conversation {
	t.Helper()
	if e := end(t, f.ask(t, req)); e.Status != StatusCompleted {
		t.Fatalf("%+v", e)
	}
	f.background.running.Wait()
	return check.Must(f.store.Conversation(t.Context(), req.ConversationID))(t)
}

func (f *fixture) empty(t *testing.T, title string) uuid.UUID {
	t.Helper()
	c, _, err := f.store.CreateConversation(t.Context(), tree.NewConversation{Title: title})
	check.NoError(t, err)
	return c.ID
}

const (
	question  = "What is a coppice?\nAnd what is a pollard?"
	beginning = "What is a coppice? And what is a pollard?"
	better    = "Coppices and pollards"
)

// A conversation gets the beginning of its first message for a title, and then
// what the model says, whose call is counted. Later answers change nothing.
func TestTitleByModel(t *testing.T) {
	t.Parallel()
	writer := naming("writes", "“"+better+".”")
	f := titled(t, summarize.TitlesModel, writer)
	id := f.empty(t, "")
	begun, err := f.store.ChangeCount(t.Context(), id)
	check.NoError(t, err)
	c := f.after(t, Request{ConversationID: id, Messages: spoken("user", question)})
	if c.Title != better {
		t.Errorf("the title is %q", c.Title)
	}
	// The message, the first title, the answer, and the other title.
	if n, err := f.store.ChangeCount(t.Context(), id); err != nil || n-begun != 4 {
		t.Errorf("%d changes are told, %v; want 4", n-begun, err)
	}
	used, err := f.store.Usage(t.Context(), id)
	if err != nil || len(used.Titles) != 1 || used.Titles[0] != (tree.ModelUsage{Model: "writes", Calls: 1, PromptTokens: 100, CompletionTokens: 7}) {
		t.Errorf("usage %+v, %v", used, err)
	}
	asked := writer.Requests()
	if len(asked) != 1 || !strings.Contains(string(asked[0].Messages[1]), "pollard") {
		t.Errorf("the model was asked %d times", len(asked))
	}
	if c = f.after(t, Request{ConversationID: id, Messages: spoken("user", "Why?")}); c.Title != better || len(writer.Requests()) != 1 {
		t.Errorf("after the second answer: %q, asked %d times", c.Title, len(writer.Requests()))
	}
}

// A title that a person or a client gave stays, and no model is asked.
func TestTitleThatWasGiven(t *testing.T) {
	t.Parallel()
	writer := naming("writes", better)
	f := titled(t, summarize.TitlesModel, writer)
	if c := f.after(t, Request{ConversationID: f.empty(t, "My trees"), Messages: spoken("user", question)}); c.Title != "My trees" {
		t.Errorf("the title is %q", c.Title)
	}
	id, head := f.conversation(t)
	mine := "Given while it was answered"
	check.Must(f.store.UpdateConversation(t.Context(), id, tree.ConversationUpdate{Title: &mine}))(t)
	if c := f.after(t, Request{ConversationID: id, HeadID: head}); c.Title != mine {
		t.Errorf("the title is %q", c.Title)
	}
	if n := len(writer.Requests()); n > 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// A person who gives a title while the model looks for one wins.
func TestTitleGivenMeanwhile(t *testing.T) {
	t.Parallel()
	var f *fixture
	var id uuid.UUID
	mine := "Mine"
	f = titled(t, summarize.TitlesModel, &llmtest.Model{ModelName: "writes", Answer: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		_, err := f.store.UpdateConversation(ctx, id, tree.ConversationUpdate{Title: &mine})
		return llmtest.Response(better), err
	}})
	id = f.empty(t, "")
	if c := f.after(t, Request{ConversationID: id, Messages: spoken("user", question)}); c.Title != mine {
		t.Errorf("the title is %q", c.Title)
	}
	if used, err := f.store.Usage(t.Context(), id); err != nil || len(used.Titles) != 1 {
		t.Errorf("the call isn't counted: %+v, %v", used, err)
	}
}

// Where the model fails, the beginning of the first question stays. The model is
// asked once, and its call is counted if it cost something.
func TestTitleWhereTheModelFails(t *testing.T) {
	t.Parallel()
	fails := &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) {
		return llm.Response{}, errors.New("down")
	}}
	for _, tt := range []struct {
		name    string
		writers []llm.Model
		calls   int
	}{
		{"it fails", []llm.Model{fails, naming("another", better)}, 0},
		{"it talks", []llm.Model{naming("talks", strings.Repeat("It is a long story. ", 20))}, 1},
		{"none", nil, 0},
	} {
		f := titled(t, summarize.TitlesModel, tt.writers...)
		id := f.empty(t, "")
		for _, text := range []string{question, "Why?"} {
			c := f.after(t, Request{ConversationID: id, Messages: spoken("user", text)})
			used := check.Must(f.store.Usage(t.Context(), id))(t)
			n := 0
			for _, u := range used.Titles {
				n += u.Calls
			}
			if c.Title != beginning || n != tt.calls {
				t.Errorf("%s, %q: %q, %d calls; want %q, %d", tt.name, text, c.Title, n, beginning, tt.calls)
			}
		}
	}
}

// The other settings ask no model.
func TestTitlesWithoutModel(t *testing.T) {
	t.Parallel()
	for titles, want := range map[summarize.Titles]string{summarize.TitlesDigest: beginning, summarize.TitlesOff: "", "": ""} {
		writer := naming("writes", better)
		f := titled(t, titles, writer)
		c := f.after(t, Request{ConversationID: f.empty(t, ""), Messages: spoken("user", question)})
		if c.Title != want || len(writer.Requests()) > 0 {
			t.Errorf("%q: %q, the model was asked %d times", titles, c.Title, len(writer.Requests()))
		}
		// Messages that were appended before have their title after the answer.
		id := f.empty(t, "")
		head := check.Must(f.store.Append(t.Context(), id, uuid.Nil, spoken("user", question)[0]))(t)
		if c := f.after(t, Request{ConversationID: id, HeadID: head.ID}); c.Title != want {
			t.Errorf("%q, appended: %q", titles, c.Title)
		}
	}
	if _, err := summarize.New(nil, summarize.Config{Titles: "all"}); err == nil {
		t.Error("another word is taken")
	}
}

// Close waits for a title as long as it may, and then ends the search.
func TestCloseEndsTitles(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	f := titled(t, summarize.TitlesModel, &llmtest.Model{Answer: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		close(asked)
		<-ctx.Done()
		return llm.Response{}, ctx.Err()
	}})
	id := f.empty(t, "")
	end(t, f.ask(t, Request{ConversationID: id, Messages: spoken("user", question)}))
	<-asked
	over, cancel := context.WithCancel(t.Context())
	cancel()
	check.NoError(t, f.Close(over))
	if c, err := f.store.Conversation(t.Context(), id); err != nil || c.Title != beginning {
		t.Errorf("%q, %v", c.Title, err)
	}
}
