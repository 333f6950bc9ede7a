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
		cfg.Titles, cfg.Contexts = true, check.Must(summarize.New(cfg.Store, summarize.Config{Titles: titles, Summarizer: summarize.Cascade{Models: models}}))(t)
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

// after asks, waits for the answer and the search for a title, and gives the conversation.
func (f *fixture) after(t *testing.T, req Request) tree.Conversation {
	t.Helper()
	e := end(t, f.ask(t, req))
	check.Need(t, e.Status == StatusCompleted, "%+v", e)
	f.background.running.Wait()
	return check.Must(f.store.Conversation(t.Context(), req.ConversationID))(t)
}

func (f *fixture) empty(t *testing.T, title string) uuid.UUID {
	t.Helper()
	c := check.Must3(f.store.CreateConversation(t.Context(), tree.NewConversation{Title: title}))(t)
	return c.ID
}

const (
	question  = "What is a coppice?\nAnd what is a pollard?"
	beginning = "What is a coppice? And what is a pollard?"
	better    = "Coppices and pollards"
)

// A conversation is called as its first message begins, then as the model says, whose call counts. It stays so.
func TestTitleByModel(t *testing.T) {
	t.Parallel()
	writer := naming("writes", "“"+better+".”")
	f := titled(t, summarize.TitlesModel, writer)
	id := f.empty(t, "")
	begun := check.Must(f.store.Feed().ChangeCount(t.Context(), id))(t)
	c := f.after(t, Request{ConversationID: id, Messages: spoken("user", question)})
	// The message, the first title, the answer, and the other title.
	n := check.Must(f.store.Feed().ChangeCount(t.Context(), id))(t)
	check.That(t, c.Title == better && n-begun == 4, "the title is %q, and %d changes are told; want 4", c.Title, n-begun)
	used, err := f.store.Usage(t.Context(), id)
	check.That(t, err == nil && len(used.Titles) == 1 && used.Titles[0] == (tree.ModelUsage{Model: "writes", Calls: 1, PromptTokens: 100, CompletionTokens: 7}), "usage %+v, %v", used, err)
	c = f.after(t, Request{ConversationID: id, Messages: spoken("user", "Why?")})
	asked := writer.Requests()
	check.That(t, c.Title == better && len(asked) == 1 && strings.Contains(string(asked[0].Messages[1]), "pollard"), "after the second answer: %q, asked %d times", c.Title, len(asked))
}

// A title that somebody gave stays, also one that is given while the model looks for one.
func TestTitleThatWasGiven(t *testing.T) {
	t.Parallel()
	var f *fixture
	const mine = "My trees"
	var id uuid.UUID
	writer := &llmtest.Model{ModelName: "writes", Answer: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		_, err := f.store.UpdateConversation(ctx, id, tree.ConversationUpdate{Title: new(mine)})
		return llmtest.Response(better), err
	}}
	f = titled(t, summarize.TitlesModel, writer)
	id, head := f.conversation(t)
	check.Must(f.store.UpdateConversation(t.Context(), id, tree.ConversationUpdate{Title: new(mine)}))(t)
	for i, req := range []Request{{ConversationID: f.empty(t, mine), Messages: spoken("user", question)}, {ConversationID: id, HeadID: head}, {ConversationID: f.empty(t, ""), Messages: spoken("user", question)}} {
		id = req.ConversationID
		c, used := f.after(t, req), check.Must(f.store.Usage(t.Context(), id))(t)
		n, asked := len(writer.Requests()), max(0, i-1)
		check.That(t, c.Title == mine && n == asked && len(used.Titles) == asked, "conversation %d: %q, the model was asked %d times, usage %+v", i, c.Title, n, used)
	}
}

// Where the model fails, or isn't set, the question's beginning stays. A paid call counts, and is the only one.
func TestTitleWithoutTheModels(t *testing.T) {
	t.Parallel()
	stop := func() {}
	fails, talks := &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) {
		stop()
		return llm.Response{}, errors.New("down")
	}}, naming("talks", strings.Repeat("It is a long story. ", 20))
	for _, tt := range []struct {
		name    string
		titles  summarize.Titles
		writers []llm.Model
		want    string
		calls   int
	}{
		{"it fails", summarize.TitlesModel, []llm.Model{fails, naming("another", better)}, beginning, 0},
		{"it talks", summarize.TitlesModel, []llm.Model{talks}, beginning, 1},
		{"none", summarize.TitlesModel, nil, beginning, 0},
		{"digest", summarize.TitlesDigest, []llm.Model{naming("unasked", better)}, beginning, 0},
		{"off", summarize.TitlesOff, []llm.Model{naming("unasked", better)}, "", 0},
		{"not set", "", []llm.Model{naming("unasked", better)}, "", 0},
	} {
		f := titled(t, tt.titles, tt.writers...)
		id, appended := f.empty(t, ""), f.empty(t, "")
		head := check.Must(f.store.Append(t.Context(), appended, uuid.Nil, spoken("user", question)[0]))(t)
		for _, req := range []Request{
			{ConversationID: id, Messages: spoken("user", question)}, {ConversationID: id, Messages: spoken("user", "Why?")}, {ConversationID: appended, HeadID: head.ID},
		} {
			c, n := f.after(t, req), 0
			for _, u := range check.Must(f.store.Usage(t.Context(), c.ID))(t).Titles {
				n += u.Calls
			}
			check.That(t, c.Title == tt.want && n == tt.calls, "%s: %q, %d calls; want %q, %d", tt.name, c.Title, n, tt.want, tt.calls)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stop = cancel
		again := f.contexts.Title(ctx, appended, check.Must(f.store.Head(t.Context(), appended))(t))
		check.That(t, errors.Is(again, context.Canceled) == (tt.name == "it fails") && len(talks.Requests()) <= 2, "%s: looked for again and stopped while it was asked: %v, %d calls", tt.name, again, len(talks.Requests()))
		cancel()
	}
	_, err := summarize.New(nil, summarize.Config{Titles: "all"})
	check.That(t, err != nil, "another word is taken")
}

// What is done after replies ends with the time that Close has.
func TestCloseEndsTitles(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	work := newBackground()
	work.run(func(ctx context.Context) { <-ctx.Done() })
	work.end(over)
}
